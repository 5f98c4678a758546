"""The client on its own socket: framing, room, leaving, and tasks beside the exchange."""

from __future__ import annotations

import asyncio

import pytest

from router.core import TooLarge, UpstreamFailed
from router.relay.attended import ClientGone
from router.relay.client import stream_headers
from router.relay.wire import WireClient, render_head


class _Line:
    """Keeps what is sent; has room until told otherwise."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.has_room = True
        self.own_headers = b""
        self.done = 0
        self.waited = 0

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    async def drained(self) -> None:
        self.waited += 1

    def finished(self) -> None:
        self.done += 1

    def create_task(self, coroutine):
        return asyncio.get_running_loop().create_task(coroutine)


def _client(body: bytes = b"{}") -> tuple[WireClient, _Line]:
    line = _Line()
    return WireClient(line, {}, body), line


async def test_the_head_goes_with_the_first_chunk_and_an_empty_one_is_not_the_end():
    client, line = _client()
    await client.start(200, [(b"a", b"b")])
    assert client.started
    assert line.writes == []
    assert client.push(b"")
    assert client.push(b"one")
    await client.write(b"two, longer")
    await client.end(b"x")
    assert line.writes == [
        b"HTTP/1.1 200 OK\r\na: b\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n",
        b"b\r\ntwo, longer\r\n",
        b"1\r\nx\r\n0\r\n\r\n",
    ]
    assert line.done == 1


async def test_for_http10_nothing_is_chunked():
    line = _Line()
    client = WireClient(line, {}, b"{}", chunked=False)
    await client.start(200, [(b"a", b"b")])
    client.push(b"one")
    client.push(b"two")
    await client.end(b"x")
    assert line.writes == [b"HTTP/1.1 200 OK\r\na: b\r\n\r\none", b"two", b"x"]
    assert line.done == 1


async def test_an_answer_without_chunks_still_has_a_head_and_an_end():
    client, line = _client()
    await client.start(200, [])
    await client.end()
    assert line.writes == [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"]


async def test_a_full_client_is_waited_for():
    client, line = _client()
    await client.start(200, [])
    line.has_room = False
    assert not client.push(b"x")
    await client.write(b"y")
    assert line.waited == 1


async def test_a_refusal_is_a_status_first_and_an_event_later():
    early, line = _client()
    await early.refuse(UpstreamFailed("gone"), [(b"x", b"y")])
    assert line.writes[0].startswith(b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: application/json")
    late, line = _client()
    await late.start(200, stream_headers([]))
    await late.refuse(UpstreamFailed("gone"), [])
    assert b'data: {"error":' in line.writes[0]
    assert line.writes[0].endswith(b"\n\n\r\n0\r\n\r\n")


async def test_the_limit_on_bodies_holds_here_too():
    client, _ = _client(b"abc")
    assert await client.read_body(3) == b"abc"
    with pytest.raises(TooLarge):
        await client.read_body(2)


async def test_tasks_beside_it_end_with_the_exchange():
    client, _ = _client()
    beside = []

    async def work(tasks) -> None:
        beside.append(tasks.create_task(asyncio.sleep(3600)))

    await client.attend(work)
    with pytest.raises(asyncio.CancelledError):
        await beside[0]


async def test_who_has_gone_is_not_served():
    client, _ = _client()
    client.lost()

    async def work(tasks) -> None:
        raise AssertionError("nobody is there")

    with pytest.raises(ClientGone):
        await client.attend(work)


async def test_a_cancellation_that_is_not_the_clients_stays_one():
    client, _ = _client()
    entered = asyncio.Event()

    async def work(tasks) -> None:
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(client.attend(work))
    await entered.wait()
    client.lost()
    task.cancel()  # the server ends in the same moment
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_leaving_after_the_answer_disturbs_nobody():
    client, _ = _client()
    done = asyncio.Event()

    async def work(tasks) -> None:
        await client.respond(200, [], b"{}")
        client.lost()
        await asyncio.sleep(0)
        done.set()

    await client.attend(work)
    assert done.is_set()


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb", b"a\rb", b"a\0b"])
def test_a_header_cannot_begin_a_second_answer(value):
    with pytest.raises(ValueError, match="not valid"):
        render_head(200, b"", [(b"x", value)])


def test_a_status_without_a_name_will_do():
    assert render_head(599, b"", []) == b"HTTP/1.1 599 \r\n\r\n"
