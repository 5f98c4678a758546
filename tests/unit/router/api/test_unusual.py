"""What is no HTTP, and heads without an end, on a real socket."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from router.api.unusual import MAX_HEAD
from tests.support.gateway import gateway


async def _say(url: str, *parts: bytes) -> tuple[bytes, dict]:
    """The status line and the JSON body of what comes back before the connection is closed."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        answer = asyncio.ensure_future(reader.readuntil(b"\r\n\r\n"))
        for part in parts:  # one more only while nothing has come back: it would meet a reset
            writer.write(part)
            await asyncio.wait((answer,), timeout=0.3)
            if answer.done():
                break
        async with asyncio.timeout(30.0):
            head = await answer
            body = await reader.read()
    finally:
        writer.transport.abort()
    return head.split(b"\r\n")[0], orjson.loads(body)


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",  # TLS, spoken to a port without
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nbad header\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx: \x00\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused_as_everything_else(said):
    async with gateway() as gate:
        line, body = await _say(gate.url, said)
    assert line.startswith(b"HTTP/1.1 400")
    assert body["error"]["code"] == "invalid_http"
    assert body["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("row", [b"x-filler: " + b"y" * 900 + b"\r\n", b"y" * 900])
async def test_a_head_without_an_end_is_not_waited_for(row):
    start = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-one: "
    more = [row * (MAX_HEAD // len(row) + 2), *([row] * 20)]
    async with gateway() as gate:
        line, body = await _say(gate.url, start, *more)
    assert line.startswith(b"HTTP/1.1 413")
    assert "head is larger" in body["error"]["message"]


async def test_large_bodies_and_many_requests_are_no_head():
    async with gateway() as gate:
        for _ in range(3):
            answer = await gate.client.put("/nowhere", content=b"x" * (3 * MAX_HEAD))
            assert answer.status_code == 404
            assert (await gate.client.get("/health")).status_code == 200


@pytest.mark.parametrize(
    "line", [b"POST /tokenize HTTP/1.1", b"POST /v1/chat/completions HTTP/1.1"]
)
async def test_a_body_after_an_offer_is_never_read_as_a_request(line):
    async with gateway() as gate:
        hidden = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        head = (
            line + b"\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            b"connection: upgrade\r\nuPgrAde: websocket\r\ncontent-length: 4242\r\n\r\n"
        )
        host, _, port = gate.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head)
        await asyncio.sleep(0.1)
        writer.write(hidden)
        async with asyncio.timeout(20.0):
            answers = await reader.read()
        writer.close()
    assert answers.count(b"HTTP/1.1 ") == 1
