from __future__ import annotations

import asyncio
import socket
import time

import pytest
import uvloop

from router.core.errors import UpstreamFailed
from router.upstream import UpstreamRequest
from router.upstream.exchange import HTTP11Limits
from router.upstream.http11 import HTTP11Upstream
from tests.support.raw_server import PATIENCE, STREAM_HEAD, answer, chunk, raw_server


def ask(url: str, body: bytes = b"{}", **fields) -> UpstreamRequest:
    return UpstreamRequest(
        url, "POST", "/v1/x", body, (), **{"first_byte_timeout": PATIENCE, **fields}
    )


async def fetch(upstream, url: str, body: bytes = b"{}") -> bytes:
    response = await upstream.open(ask(url, body))
    body = b"".join([part async for part in response.chunks()])
    await response.aclose()
    return body


async def _answers(peer) -> None:
    while True:
        await peer.request()
        await peer.send(answer(b"ok"))


async def test_connections_are_counted_and_few_are_kept():
    upstream = HTTP11Upstream(HTTP11Limits(idle_connections=2))
    async with raw_server(_answers) as server:
        for _ in range(3):
            await asyncio.gather(*(fetch(upstream, server.url) for _ in range(5)))
        assert upstream.connects == len(server.peers) == 5 + 3 + 3
        await upstream.aclose()


async def test_idle_connections_grow_old():
    upstream = HTTP11Upstream(HTTP11Limits(idle_seconds=0.0))
    async with raw_server(_answers) as server:
        for _ in range(3):
            await fetch(upstream, server.url)
            await asyncio.sleep(0.01)
        assert upstream.connects == 3
        await upstream.aclose()


async def test_worker_that_never_reads_the_body_is_heard():
    async def script(peer) -> None:
        await peer.head()
        await peer.send(answer(b"too large", status=b"413 Payload Too Large"))
        await asyncio.sleep(PATIENCE)

    upstream = HTTP11Upstream()
    async with raw_server(script) as server:
        for _ in range(2):
            assert await fetch(upstream, server.url, bytes(20_000_000)) == b"too large"
        assert upstream.connects == 2
        await upstream.aclose()


async def test_a_stale_cancellation_does_not_harm_the_next_exchange():
    """The answer arrives, another request takes the connection, then the first is cancelled."""
    upstream = HTTP11Upstream()
    async with raw_server(_answers) as server:
        await fetch(upstream, server.url)
        first = asyncio.ensure_future(upstream.open(ask(server.url)))
        await asyncio.sleep(0)
        (pool,) = upstream._pools.values()
        while not pool.idle:  # noqa: ASYNC110 - until the answer has come: no event tells
            await asyncio.sleep(0)
        second = asyncio.ensure_future(fetch(upstream, server.url))
        first.cancel()
        assert await second == b"ok"
        await asyncio.wait([first])
        assert upstream.connects == 1
        await upstream.aclose()


async def test_closing_while_a_reader_waits_wakes_it():
    async def script(peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD + chunk(b"x"))
        await peer.until_gone()

    async def read(response) -> list[bytes]:
        return [part async for part in response.chunks()]

    upstream = HTTP11Upstream()
    async with raw_server(script) as server:
        response = await upstream.open(ask(server.url))
        task = asyncio.ensure_future(read(response))
        await asyncio.sleep(0.01)
        await response.aclose()
        with pytest.raises(UpstreamFailed, match="given up"):
            await task
        await upstream.aclose()


async def test_closed_transport_keeps_no_connection():
    async def script(peer) -> None:
        await peer.request()
        await peer.send(answer(b"ok")[:-1])
        await go.wait()
        await peer.send(b"k")
        await peer.until_gone()

    go = asyncio.Event()
    upstream = HTTP11Upstream()
    async with raw_server(script) as server:
        response = await upstream.open(ask(server.url))
        await upstream.aclose()
        go.set()
        assert b"".join([part async for part in response.chunks()]) == b"ok"
        async with asyncio.timeout(PATIENCE):
            await server.peers[0].gone.wait()


async def test_forgotten_workers_leave_no_pool():
    upstream = HTTP11Upstream()
    for port in range(1, 600):
        upstream._add_pool(f"http://127.0.0.1:{port}")
    assert len(upstream._pools) <= 257
    await upstream.aclose()


async def test_a_name_is_looked_up_once_for_many_streams(monkeypatch):
    async def script(peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD + chunk(b"x") + b"0\r\n\r\n")

    def counted(*args, **kwargs):
        looked_up.append(args[0])
        return lookup(*args, **kwargs)

    looked_up: list[str] = []
    lookup = socket.getaddrinfo
    upstream = HTTP11Upstream()
    async with raw_server(script) as server:
        monkeypatch.setattr(socket, "getaddrinfo", counted)
        url = server.url.replace("127.0.0.1", "localhost")
        for _ in range(5):
            assert await fetch(upstream, url) == b"x"
        assert upstream.connects == 5
        await upstream.aclose()
    assert looked_up.count("localhost") == 1


async def test_a_name_is_looked_up_again_when_its_address_fails():
    upstream = HTTP11Upstream()
    async with raw_server(_answers) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        await fetch(upstream, url)
        (pool,) = upstream._pools.values()
        pool.idle.pop().abort()
        pool._address = "127.0.0.9"  # nobody listens there
        assert await fetch(upstream, url) == b"ok"
        assert pool._address == "127.0.0.1"
        await upstream.aclose()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_small_writes_are_not_delayed(loop):
    """TCP_NODELAY is on, on either event loop."""

    async def main() -> int:
        upstream = HTTP11Upstream()
        async with raw_server(_answers) as server:
            await fetch(upstream, server.url)
            (pool,) = upstream._pools.values()
            handle = pool.idle[0]._transport.get_extra_info("socket")
            with socket.socket(fileno=socket.dup(handle.fileno())) as twin:
                value = twin.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            await upstream.aclose()
            return value

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(main()) != 0


async def test_a_worker_that_keeps_connections_after_streams_is_learned():
    stream = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 2\r\n\r\nok"

    async def keeps(peer) -> None:
        while True:
            await peer.request()
            await peer.send(stream)

    async def closes(peer) -> None:
        await peer.request()
        await peer.send(stream)

    for script, connects in ((keeps, 1), (closes, 4)):
        upstream = HTTP11Upstream()
        async with raw_server(script) as server:
            for _ in range(4):
                assert await fetch(upstream, server.url) == b"ok"
                await asyncio.sleep(0.1)  # longer than the probation
            assert upstream.connects == connects
            await upstream.aclose()


async def test_a_late_loop_sees_the_connection_before_it_gives_up():
    """Under load the loop turns late: that says nothing about the worker."""

    async def script(peer):
        await peer.request()
        await peer.send(answer())

    async with raw_server(script) as server:
        upstream = HTTP11Upstream()
        asking = asyncio.ensure_future(upstream.open(ask(server.url, connect_timeout=0.05)))
        await asyncio.sleep(0)
        time.sleep(0.2)  # noqa: ASYNC251 - the loop is what is late
        opened = await asking
        assert opened.status == 200
        await opened.aclose()
        await upstream.aclose()
