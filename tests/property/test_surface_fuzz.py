"""Anything at all, sent to every path: a documented answer each time, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import httpx
import orjson
import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from router.api.openapi import REFUSALS
from router.api.passthrough import PATHS
from router.core import Endpoint
from tests.support.engines import real_workers
from tests.support.gateway import ADMIN
from tests.support.gateway_process import gateway_process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from workers.record import WorkerRecord

pytestmark = [
    pytest.mark.slow,
    # schemathesis' own, and of the clients it brings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

PROOF = bool(os.environ.get("SPECROUTE_PROOF"))
SCHEMA_EXAMPLES = 200 if PROOF else 3  # per operation and mode; 23 operations
BLIND_REQUESTS = 16_000 if PROOF else 800
REAL_REQUESTS = 2_000 if PROOF else 80  # before a real llama.cpp, which is slower
ALLOWED = {200, 307, *map(int, REFUSALS)}
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
ENDLESS = ("/ops/decisions",)  # a stream that ends with the gateway


@asynccontextmanager
async def unharmed(folder: Path, *arguments: str, records: Sequence[WorkerRecord] = ()):
    """A gateway that must be at the end as it was."""
    async with gateway_process(folder, *arguments, records=records) as process:
        before = await process.quiet()
        yield process
        after = await process.quiet()
        async with httpx.AsyncClient(base_url=process.url, timeout=60.0) as client:
            body = {"model": "tiny", "messages": [{"role": "user", "content": "still there?"}]}
            assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
        text = process.log.read_text(errors="replace")
    assert after["tasks"] <= before["tasks"] + 8  # idle connections to the workers
    assert "Traceback" not in text
    assert "background_task_failed" not in text
    assert "request_failed" not in text


@pytest.fixture
async def running(tmp_path):
    """A gateway before two scripted workers."""
    async with unharmed(tmp_path, "--simulated", "2") as process:
        yield process


def _try_operation(operation, mode: schemathesis.GenerationMode, url: str) -> int:
    """So many cases of one operation; returns how many were sent."""
    sent = 0

    @seed(1)
    @settings(
        max_examples=SCHEMA_EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case) -> None:
        nonlocal sent
        sent += 1
        headers = ADMIN if operation.path.startswith("/ops") else None
        response = case.call(base_url=url, headers=headers, timeout=60.0)
        case.validate_response(response, checks=CHECKS)

    run()
    return sent


async def test_the_document_keeps_its_word(running):
    async with httpx.AsyncClient(base_url=running.url, timeout=60.0) as client:
        document = (await client.get("/openapi.json")).json()
    load_all_checks()
    schema = schemathesis.openapi.from_dict(document)
    operations = [result.ok() for result in schema.get_all_operations()]
    sent = 0
    for operation in operations:
        if operation.path in ENDLESS:
            continue
        for mode in schemathesis.GenerationMode:
            attempt = partial(_try_operation, operation, mode, running.url)
            try:
                sent += await asyncio.to_thread(attempt)
            except Unsatisfiable:
                continue  # nothing to get wrong in an operation without parameters
    os.write(1, f"{sent} requests over {len(operations)} operations\n".encode())
    assert sent > len(operations)


class _Blind:
    """Requests that no schema would make: torn JSON, odd types, deep nesting, wrong everything."""

    paths = (
        *(e.value for e in Endpoint),
        *PATHS,
        "/route",
        "/v1/models",
        "/ops/summary",
        "/metrics",
    )
    fields = (
        *("model", "messages", "prompt", "input", "stream", "stream_options", "n", "max_tokens"),
        *("temperature", "stop", "tools", "tool_choice", "response_format", "grammar", "query"),
        *("json_schema", "logit_bias", "cache_prompt", "id_slot", "chat_template_kwargs", "user"),
    )

    def __init__(self, number: int) -> None:
        self.rng = random.Random(number)

    def request(self) -> dict:
        rng = self.rng
        method = rng.choices(("POST", "GET", "PUT", "DELETE", "PATCH"), (12, 1, 1, 1, 1))[0]
        return {
            "method": method,
            "url": rng.choice(self.paths) + rng.choice(("", "", "", "/", "?a=%00", "/../x")),
            "content": self.body() if method != "GET" else None,
            "headers": self.headers(),
        }

    def headers(self) -> dict[str, bytes]:
        rng = self.rng
        kind = b"application/json" if rng.random() < 0.9 else rng.randbytes(8).hex().encode()
        found = {"content-type": kind}
        for name in ("x-specroute-worker", "x-specroute-mode", "x-specroute-class"):
            if rng.random() < 0.1:
                found[name] = rng.choice(
                    (b"w0", b"ar", b"prose", b"auto", b"", b"\xff\xfe", b"x" * 900)
                )
        for name in ("x-session-id", "x-request-id", "authorization", "x-api-key", "traceparent"):
            if rng.random() < 0.1:
                found[name] = bytes(rng.choices(range(0x21, 0x100), k=rng.choice((1, 40, 300))))
        return found

    def body(self) -> bytes:
        rng = self.rng
        whole = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "prompt": "hi"}
        whole["max_tokens"] = 2
        for name in rng.sample(self.fields, rng.randrange(4)):
            whole[name] = self.value(3)
        data = orjson.dumps(whole, option=orjson.OPT_NON_STR_KEYS)
        if rng.random() < 0.15:
            at = rng.randrange(len(data))
            data = data[:at] + rng.randbytes(rng.randrange(4)) + data[at + rng.randrange(3) :]
        elif rng.random() < 0.03:
            depth = rng.choice((50, 400, 5000))
            data = data[:-1] + b',"tools":' + b"[" * depth + b"]" * depth + b"}"
        return data

    def value(self, depth: int):
        rng = self.rng
        if depth and rng.random() < 0.4:
            if rng.random() < 0.5:
                return [self.value(depth - 1) for _ in range(rng.randrange(4))]
            names = (
                "role",
                "content",
                "type",
                "text",
                "function",
                "schema",
                "properties",
                "image_url",
            )
            return {rng.choice(names): self.value(depth - 1) for _ in range(rng.randrange(4))}
        plain = ("", "x", "user", "json_schema", "\u0000", "\U0001f600" * 9, 0, -1, 1, 1e300, 2**53)
        return rng.choice((*plain, True, False, None, 0.5, "y" * 5000))


async def _ask(client: httpx.AsyncClient, blind: _Blind) -> None:
    request = blind.request()
    answer = await client.request(**request)
    where = f"{request} -> {answer.status_code} {answer.content[:300]!r}"
    assert answer.status_code in ALLOWED, where
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert set(error) >= {"message", "type", "param", "code"}, where
        assert error["code"] is None or isinstance(error["code"], str), where


async def _send_blindly(url: str, count: int) -> None:
    """So many requests over eight connections."""

    async def some(lane: int) -> None:
        blind = _Blind(lane)
        async with httpx.AsyncClient(base_url=url, timeout=120.0) as client:
            for _ in range(count // 8):
                await _ask(client, blind)

    async with asyncio.TaskGroup() as group:
        for lane in range(8):
            group.create_task(some(lane))


async def test_nothing_that_can_be_sent_does_harm(running):
    await _send_blindly(running.url, BLIND_REQUESTS)


@pytest.mark.engine
async def test_nor_to_a_real_worker(tmp_path):
    with real_workers(tmp_path, "ar", slots=8, context=512) as (worker,):
        record = worker.record(context=512)
        async with unharmed(tmp_path, records=[record]) as process:
            await _send_blindly(process.url, REAL_REQUESTS)
        assert await worker.busy() == 0
        assert worker.process.poll() is None
