"""A client's connection: order, keep-alive, leaving, ending, and who may wait how long."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from router.api import wire as module
from router.relay import ClientGone
from tests.support.waiting import until
from tests.support.wire import Wire, post

CLOSED = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"


class _Held:
    """Serves only when told, inside the block that ends with the client."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.began = 0
        self.ended: list[str] = []

    async def __call__(self, client) -> None:
        self.began += 1
        try:
            await client.attend(partial(self._answer, client))
            self.ended.append("answered")
        except ClientGone:
            self.ended.append("gone")

    async def _answer(self, client, tasks) -> None:
        await self.go.wait()
        await client.respond(200, [], b"{}")


async def test_the_clients_wish_to_close_is_told_and_kept():
    wire = Wire()
    await wire.feed([post(b"{}", b"connection: close") + b"rest"])
    assert wire.transport.sent == CLOSED
    assert wire.transport.closed
    assert wire.state.total_requests == 1


@pytest.mark.parametrize("name", [b"upgrade", b"Upgrade", b"UPGRADE"])
async def test_an_offer_of_another_protocol_is_passed_over_and_the_body_read(name):
    wire = Wire()
    offer = (b"connection: Upgrade, HTTP2-Settings", name + b": h2c", b"http2-settings: AAQ")
    hidden = post(b'{"hidden": 1}')
    await wire.feed([post(hidden, *offer)[:-20], hidden[-20:] + post(b"{}")])
    assert [body for _, body in wire.seen] == [hidden, b"{}"]


async def test_the_wish_to_close_is_kept_where_there_is_no_body():
    wire = Wire()
    await wire.feed([post(b"", b"connection: close")])
    assert b"\r\nconnection: close\r\n" in wire.transport.sent
    assert wire.transport.closed


async def test_http10_is_answered_and_the_connection_closed_whatever_it_wishes():
    wire = Wire()
    line = b"POST /v1/chat/completions HTTP/1.0"
    await wire.feed([post(b"{}", b"connection: keep-alive", line=line)])
    assert wire.transport.sent == CLOSED
    assert wire.transport.closed


async def test_a_client_that_goes_ends_what_was_under_way():
    held = _Held()
    wire = Wire(held)
    wire.protocol.data_received(post())
    await until(lambda: held.began == 1)
    wire.protocol.connection_lost(None)
    await wire.settled()
    assert held.ended == ["gone"]
    assert wire.state.connections == set()


async def test_a_client_that_goes_before_its_request_has_begun_is_gone():
    held = _Held()
    wire = Wire(held)
    wire.protocol.data_received(post())
    wire.protocol.connection_lost(None)
    await wire.settled()
    assert held.ended == ["gone"]


async def test_a_server_that_ends_lets_the_answer_finish_and_takes_no_other():
    held = _Held()
    wire = Wire(held)
    wire.protocol.data_received(post() + post())
    await until(lambda: held.began == 1)
    wire.protocol.shutdown()
    assert not wire.transport.closed
    held.go.set()
    await wire.settled()
    assert (held.began, wire.transport.sent) == (1, CLOSED)
    assert wire.transport.closed


async def test_a_server_that_ends_waits_for_a_body_and_not_for_the_idle():
    idle = Wire()
    idle.protocol.shutdown()
    assert idle.transport.closed
    wire, request = Wire(), post(b'{"a":1}')
    wire.protocol.data_received(request[:-3])
    wire.protocol.shutdown()
    assert not wire.transport.closed
    await wire.feed([request[-3:]])
    assert wire.transport.sent.endswith(b'{"a":1}')
    assert wire.transport.closed


async def test_a_cancelled_task_leaves_no_connection_hanging():
    wire = Wire(_Held())
    wire.protocol.data_received(post())
    await asyncio.sleep(0)
    for task in set(wire.state.tasks):
        task.cancel()
    await wire.settled()
    assert wire.transport.closed


@pytest.mark.parametrize("started", [False, True])
async def test_a_fault_of_ours_is_told_while_that_is_possible(started):
    async def fails(client) -> None:
        if started:
            await client.start(200, [])
            client.push(b"x")
        raise KeyError("a fault")

    wire = Wire(fails)
    await wire.feed([post()])
    assert wire.transport.sent.startswith(b"HTTP/1.1 200" if started else b"HTTP/1.1 500")
    assert b"a fault" not in wire.transport.sent
    assert wire.transport.closed == started


@pytest.mark.interpreted
async def test_requests_ahead_of_their_turn_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING", 100)
    held = _Held()
    wire = Wire(held)
    wire.protocol.data_received(post())
    for _ in range(3):
        wire.protocol.data_received(post())
    assert not wire.transport.reading
    held.go.set()
    await until(lambda: wire.transport.sent.count(b"200 OK") == 4)
    assert wire.transport.reading


@pytest.mark.interpreted
@pytest.mark.parametrize("limit", ["MAX_HEAD", "MAX_BODY"])
async def test_what_is_large_is_left_to_uvicorn(monkeypatch, limit):
    monkeypatch.setattr(module, limit, 20)
    wire, request = Wire(), post(b"x" * 30)
    await wire.feed([request])
    assert wire.other.data == request
    slow = Wire()
    await slow.feed([request[:50], request[50:]])
    assert slow.other.data == request


@pytest.mark.interpreted
async def test_an_idle_connection_is_closed_in_the_end(monkeypatch):
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 0.05)
    held = _Held()
    busy, idle, half = Wire(held), Wire(), Wire()
    busy.protocol.data_received(post())
    half.protocol.data_received(post()[:30])
    await until(lambda: idle.transport.closed and half.transport.closed)
    assert not busy.transport.closed
    held.go.set()
    await until(lambda: busy.transport.closed)
    assert held.ended == ["answered"]


async def test_the_servers_own_headers_come_first():
    wire = Wire()
    wire.state.default_headers = [(b"date", b"today")]
    await wire.feed([post()])
    assert wire.transport.sent.startswith(b"HTTP/1.1 200 OK\r\ndate: today\r\n")
