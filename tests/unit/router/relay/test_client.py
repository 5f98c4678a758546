"""The ASGI side: bodies in pieces, noticing who leaves, refusals before and after the start."""

from __future__ import annotations

import asyncio

import pytest

from router.core import TooLarge, UpstreamFailed
from router.relay.attended import ClientGone
from router.relay.client import Client, stream_headers


class _Wire:
    """Messages to be received, and what was sent."""

    def __init__(self, *messages: dict, headers=()) -> None:
        self.messages = list(messages)
        self.sent: list[dict] = []
        self.client = Client({"headers": list(headers)}, self._receive, self._send, "id")

    async def _receive(self) -> dict:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)

    async def _send(self, message: dict) -> None:
        self.sent.append(message)


def _part(body: bytes, more: bool = False) -> dict:
    return {"type": "http.request", "body": body, "more_body": more}


GONE = {"type": "http.disconnect"}


async def test_a_body_comes_whole_or_in_pieces():
    assert await _Wire(_part(b"ab")).client.read_body(2) == b"ab"
    pieces = (_part(b"a", True), _part(b"", True), _part(b"b"))
    assert await _Wire(*pieces).client.read_body(2) == b"ab"
    assert await _Wire(_part(b"")).client.read_body(0) == b""


@pytest.mark.parametrize(
    "wire",
    [
        _Wire(_part(b"abc")),
        _Wire(_part(b"ab", True), _part(b"c", True)),
        _Wire(headers=[(b"content-length", b"3")]),
    ],
)
async def test_too_much_is_refused_as_soon_as_it_is_known(wire):
    with pytest.raises(TooLarge):
        await wire.client.read_body(2)


@pytest.mark.parametrize("wire", [_Wire(GONE), _Wire(_part(b"a", True), GONE)])
async def test_leaving_in_the_body_is_noticed(wire):
    with pytest.raises(ClientGone):
        await wire.client.read_body(10)


async def test_watching_tells_who_leaves_early_from_who_is_done():
    with pytest.raises(ClientGone):
        await _Wire(_part(b""), GONE).client.watch()
    served = _Wire(GONE)
    await served.client.respond(200, [], b"x")
    await served.client.watch()


async def test_a_whole_answer_has_its_length():
    wire = _Wire()
    await wire.client.respond(200, [(b"a", b"b")], b"body")
    start, body = wire.sent
    assert start["headers"] == [(b"a", b"b"), (b"content-length", b"4")]
    assert body["body"] == b"body"


async def test_a_refusal_is_a_status_first_and_an_event_later():
    error = UpstreamFailed("gone")
    early = _Wire()
    await early.client.refuse(error, [(b"x", b"y")])
    assert early.sent[0]["status"] == 502
    assert (b"x", b"y") in early.sent[0]["headers"]
    late = _Wire()
    await late.client.start(200, stream_headers([]))
    await late.client.refuse(error, [])
    assert [message["type"] for message in late.sent] == [
        "http.response.start",
        "http.response.body",
    ]
    assert late.sent[1]["body"].startswith(b'data: {"error":')
    assert late.sent[1]["body"].endswith(b"\n\n")
    assert not late.sent[1].get("more_body")
