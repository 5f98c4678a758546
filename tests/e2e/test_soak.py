"""Sixty-four streams at once, one in twenty broken off at a random moment: nothing leaks, and every
other byte is the worker's own."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import orjson
import pytest

from router.relay.keep_alive import COMMENT
from tests.support.engines import real_workers
from tests.support.gateway_process import gateway_process
from tests.support.tee import Body, Tee, tee
from tests.support.waiting import until

PROOF = bool(os.environ.get("SPECROUTE_PROOF"))
SECONDS = 600.0 if PROOF else 60.0
STREAMS = 64
LEAVERS = 0.05
LOOK_S = 5.0
PROMPTS = (
    "Count from 1 to 500.",
    "Write a story about a lighthouse keeper and her dog.",
    'Write a JSON list of books with the keys "title" and "year".',
    "Объясни по шагам, почему море солёное.",
)
pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(SECONDS + 300)]


@dataclass
class Soak:
    """What became of the streams, and what the gateway looked like meanwhile."""

    url: str
    tees: list[Tee]
    whole: int = 0
    left: int = 0
    size: int = 0  # bytes compared
    wrong: list[str] = field(default_factory=list)
    looks: list[dict] = field(default_factory=list)

    def judge(self, trace: str, answer: Body) -> None:
        """A stream that was read to its end, against what a worker sent."""
        sent = [body for one in self.tees if (body := one.take(trace)) is not None]
        content = answer.content
        while content.startswith(COMMENT):  # after ten seconds without a first byte
            content = content.removeprefix(COMMENT)
        if len(sent) != 1 or not content.endswith(b"data: [DONE]\n\n"):
            self.wrong.append(f"{len(sent)} answers, {answer.status}: {content[-300:]!r}")
        elif sent[0].content != _without_added_role(content, sent[0].content):
            self.wrong.append(f"{sent[0].content[-300:]!r} became {content[-300:]!r}")
        self.whole += 1
        self.size += len(content)


def _without_added_role(content: bytes, sent: bytes) -> bytes:
    """The gateway says the role first where a worker leaves it out (a first token that is only part
    of a character); everything else is the worker's, byte for byte."""
    first, _, rest = content.partition(b"\n\n")
    added = b'"role"' in first and b'"role"' not in sent.partition(b"\n\n")[0]
    return rest if added else content


async def _client(soak: Soak, number: int, ends: float) -> None:
    rng = random.Random(number)
    loop = asyncio.get_running_loop()
    while loop.time() < ends:
        trace = f"00-{rng.getrandbits(128) | 1:032x}-{rng.getrandbits(64) | 1:016x}-00"
        patience = rng.uniform(0.0, 3.0) if rng.random() < LEAVERS else None
        answer = Body()
        try:
            async with asyncio.timeout(patience):
                await _stream(soak.url, _request(rng, trace), answer)
        except TimeoutError:
            soak.left += 1
            for one in soak.tees:
                one.take(trace)
        else:
            soak.judge(trace, answer)


def _request(rng: random.Random, trace: str) -> bytes:
    body = orjson.dumps(
        {
            "model": "tiny",
            "messages": [{"role": "user", "content": rng.choice(PROMPTS)}],
            "stream": True,
            "max_tokens": rng.randrange(8, 120),
            "ignore_eos": True,
            "seed": rng.randrange(1000),
        }
    )
    rows = (
        "POST /v1/chat/completions HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Connection: close",
        f"traceparent: {trace}",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*rows, "", "")).encode() + body


async def _stream(url: str, request: bytes, answer: Body) -> None:
    """One answer to its end; leaving resets the connection."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(request)
        while data := await reader.read(65_536):
            answer.feed(data)
    finally:
        writer.transport.abort()


async def _watch(soak: Soak, process) -> None:
    while True:
        await asyncio.sleep(LOOK_S)
        soak.looks.append(await process.look())


async def test_nothing_leaks_and_no_byte_changes(tmp_path):
    with real_workers(tmp_path, "ar", "mtp-n3", slots=STREAMS // 2, context=512) as workers:
        async with AsyncExitStack() as stack:
            tees = [await stack.enter_async_context(tee(worker.url)) for worker in workers]
            records = [
                replace(worker.record(context=512), url=one.url)
                for worker, one in zip(workers, tees, strict=True)
            ]
            process = await stack.enter_async_context(gateway_process(tmp_path, records=records))
            before = await process.quiet()
            soak = Soak(process.url, tees)
            await _run(soak, process)
            await process.quiet()
            await asyncio.sleep(1.0)  # the recorder's turn
            after = await process.quiet()
            await until(lambda: sum(one.open for one in tees) <= 4, 60.0)
            busy = [await worker.busy() for worker in workers]
        log = process.log.read_text(errors="replace")
    _report(soak, before, after)
    assert soak.wrong == []
    assert soak.whole >= STREAMS // 2
    assert soak.left > 0
    assert busy == [0, 0]
    # Each request counted exactly once; of those who left, some did before they had asked.
    assert soak.whole <= after["ended"] <= soak.whole + soak.left
    assert after["tasks"] <= before["tasks"] + 4
    assert after["sockets"] <= before["sockets"] + 8  # idle connections to the workers
    assert "Traceback" not in log
    _assert_level(soak)


async def _run(soak: Soak, process) -> None:
    ends = asyncio.get_running_loop().time() + SECONDS
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(_watch(soak, process))
        clients = [group.create_task(_client(soak, n, ends)) for n in range(STREAMS)]
        await asyncio.wait(clients)
        watching.cancel()


def _assert_level(soak: Soak) -> None:
    """Memory of the last quarter against the second: growth would show, warming up does not."""
    sizes = [look["rss"] for look in soak.looks]
    quarter = len(sizes) // 4
    if PROOF:
        second, last = sizes[quarter : 2 * quarter], sizes[-quarter:]
        assert statistics.median(last) <= statistics.median(second) * 1.03 + 2**21
    assert max(look["tasks"] for look in soak.looks) <= 8 * STREAMS
    assert all(look["in_flight"] <= STREAMS for look in soak.looks)


def _report(soak: Soak, before: dict, after: dict) -> None:
    """Shown by `pytest -s`, and with every failure."""
    sizes = [round(look["rss"] / 2**20, 1) for look in soak.looks]
    lines = (
        f"{soak.whole} whole streams ({soak.size / 2**20:.1f} MiB), {soak.left} broken off",
        f"memory in MiB: {sizes[:: max(1, len(sizes) // 20)]}",
        f"before {before}",
        f"after {after}",
    )
    os.write(1, ("\n".join(lines) + "\n").encode())
