"""An assembled answer is the one the raw server gives, field for field, order included."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from router.upstream import UpstreamRequest, build_upstream
from router.upstream.assemble import Assembler, can_assemble, upstream_body
from router.upstream.sse import StreamTap, UsageFilter
from tests.support.engines import real_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.engines import RealWorker

pytestmark = pytest.mark.engine

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
TALK = [{"role": "user", "content": "Count from 1 to 5."}]
SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
TOOL = {"name": "look", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (CHAT, {"messages": TALK, "max_tokens": 24}),
    "chat, stream false": (CHAT, {"messages": TALK, "max_tokens": 4, "stream": False}),
    "chat, one token": (CHAT, {"messages": TALK, "max_tokens": 1}),
    "chat, nothing said": (CHAT, {"messages": TALK, "grammar": 'root ::= ""'}),
    "chat, logprobs": (
        CHAT,
        {"messages": TALK, "max_tokens": 6, "logprobs": True, "top_logprobs": 2},
    ),
    "chat, thinking": (
        CHAT,
        {"messages": TALK, "max_tokens": 48, "chat_template_kwargs": {"enable_thinking": True}},
    ),
    "chat, schema": (
        CHAT,
        {
            "messages": TALK,
            "max_tokens": 60,
            "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
        },
    ),
    "chat, tools offered": (
        CHAT,
        {"messages": TALK, "max_tokens": 24, "tools": [{"type": "function", "function": TOOL}]},
    ),
    "chat, stop": (CHAT, {"messages": TALK, "max_tokens": 24, "stop": ["e", "3"]}),
    "chat, timings and progress": (
        CHAT,
        {"messages": TALK, "max_tokens": 8, "timings_per_token": True, "return_progress": True},
    ),
    "chat, emoji": (CHAT, {"messages": TALK, "grammar": 'root ::= "\U0001f600 é\\n" [a-c]{3}'}),
    "text": (TEXT, {"prompt": "one two", "max_tokens": 24}),
    "text, logprobs": (TEXT, {"prompt": "one two", "max_tokens": 6, "logprobs": 2}),
    "text, stop": (TEXT, {"prompt": ["one two"], "max_tokens": 24, "stop": ["e"]}),
    "text, tokens": (TEXT, {"prompt": [1, 2, 3], "max_tokens": 6}),
}


@pytest.fixture(scope="module", params=["ar", "dflash2-margin"])
def engine(request, tmp_path_factory) -> Iterator[RealWorker]:
    """A real llama.cpp server on the bundled trio."""
    folder = tmp_path_factory.mktemp("engine")
    with real_workers(folder, request.param, slots=1) as (worker,):
        yield worker


def ask(worker: RealWorker, path: str, body: bytes) -> UpstreamRequest:
    key = worker.headers["authorization"].encode()
    headers = ((b"content-type", b"application/json"), (b"authorization", key))
    return UpstreamRequest(worker.url, "POST", path, body, headers)


async def said(worker: RealWorker, path: str, body: bytes) -> tuple[int, bytes, list[bytes]]:
    """Status, content type and the chunks of one exchange."""
    upstream = build_upstream("http11")
    response = await upstream.open(ask(worker, path, body))
    try:
        chunks = [chunk async for chunk in response.chunks()]
        return response.status, dict(response.headers)[b"content-type"], chunks
    finally:
        await response.aclose()
        await upstream.aclose()


def comparable(raw: bytes) -> str:
    """The answer without what differs from one run of the same request to the next."""
    answer = orjson.loads(raw)
    answer["id"] = answer["created"] = None
    answer["timings"] = dict.fromkeys(answer["timings"])
    for choice in answer["choices"]:
        for call in choice.get("message", {}).get("tool_calls", []):
            call["id"] = bool(call["id"])
    return orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()


@pytest.mark.parametrize("case", [name for name, (_, f) in CASES.items() if can_assemble(f)])
async def test_assembled_answer_is_the_raw_servers(engine, case):
    path, fields = CASES[case]
    payload = {**fields, "temperature": 0, "seed": 1, "cache_prompt": False}
    body = orjson.dumps(payload)
    _, _, plain = await said(engine, path, body)
    _, kind, streamed = await said(engine, path, upstream_body(payload, body))
    assert kind == b"text/event-stream"
    assembler = Assembler()
    for chunk in streamed:
        assembler.feed(chunk)
    assert comparable(assembler.body()) == comparable(b"".join(plain))


@pytest.mark.parametrize("case", ["chat", "text", "chat, logprobs"])
async def test_stream_without_its_usage_event_is_the_one_the_client_asked_for(engine, case):
    """Hidden usage: what is left is the raw stream, but for the timings on its finish event."""
    path, fields = CASES[case]
    payload = {**fields, "temperature": 0, "seed": 1, "cache_prompt": False, "stream": True}
    body = orjson.dumps(payload)
    _, _, plain = await said(engine, path, body)
    _, _, counted = await said(engine, path, upstream_body(payload, body))
    hide = UsageFilter()
    shown = b"".join(map(hide.feed, counted)) + hide.finish()
    assert _events(shown) == _events(b"".join(plain))


def _events(raw: bytes) -> list[Any]:
    rows = [row.removeprefix(b"data: ") for row in raw.split(b"\n\n") if row]
    assert rows[-1] == b"[DONE]"
    events = [orjson.loads(row) for row in rows[:-1]]
    for event in events:
        event["id"] = event["created"] = event["timings"] = None
    return events


@pytest.mark.parametrize("path", [CHAT, TEXT])
@pytest.mark.parametrize("counted", [False, True])
async def test_tap_reads_the_servers_own_figures(engine, path, counted):
    payload: dict[str, Any] = {"max_tokens": 7, "temperature": 0, "stream": True}
    payload |= {"messages": TALK} if path == CHAT else {"prompt": "one two"}
    body = orjson.dumps(payload)
    _, _, chunks = await said(engine, path, upstream_body(payload, body) if counted else body)
    tap = StreamTap()
    first = [tap.feed(chunk) for chunk in chunks]
    result = tap.result()
    assert sum(first) >= result.content_events > 0
    assert result.timings is not None
    assert result.timings["predicted_n"] == 7
    assert (result.finish_reason, result.saw_done) == ("length", True)
    assert result.content_events <= 7  # a token that ends inside a character brings no event
    if counted:
        assert result.usage is not None
        assert result.usage["completion_tokens"] == 7


async def test_refusal_of_a_stream_is_a_plain_answer(engine):
    payload = {"messages": TALK, "max_tokens": "x"}
    status, kind, chunks = await said(engine, CHAT, upstream_body(payload, orjson.dumps(payload)))
    assert (status, kind.startswith(b"application/json")) == (400, True)
    assert orjson.loads(b"".join(chunks))["error"]["type"] == "invalid_request_error"


async def test_leaving_a_stream_ends_the_workers_work(engine):
    upstream = build_upstream("http11")
    body = orjson.dumps({"messages": TALK, "stream": True, "max_tokens": 900, "ignore_eos": True})
    response = await upstream.open(ask(engine, CHAT, body))
    async for _ in response.chunks():
        break
    await response.aclose()
    await upstream.aclose()
    async with asyncio.timeout(20):  # it looks about once a second
        while await engine.busy():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)
