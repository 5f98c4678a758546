"""What every transport does alike, against a server that decides every byte."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from router.core.errors import UpstreamFailed, UpstreamTimeout
from router.upstream import UPSTREAMS, UpstreamRequest, build_upstream
from tests.support.raw_server import (
    LAST_CHUNK,
    PATIENCE,
    STREAM_HEAD,
    answer,
    chunk,
    raw_server,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from router.upstream import Upstream
    from tests.support.raw_server import Peer

JSON = ((b"content-type", b"application/json"),)
EVENT = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'


@pytest.fixture(params=sorted(UPSTREAMS))
def transport(request) -> str:
    return request.param


@asynccontextmanager
async def opened(transport: str) -> AsyncIterator[Upstream]:
    upstream = build_upstream(transport)
    try:
        yield upstream
    finally:
        await upstream.aclose()


def ask(url: str, body: bytes = b"{}", **fields) -> UpstreamRequest:
    return UpstreamRequest(
        **{
            "base_url": url,
            "method": "POST",
            "path": "/v1/chat/completions",
            "body": body,
            "headers": JSON,
            "connect_timeout": PATIENCE,
            "first_byte_timeout": PATIENCE,
            "idle_timeout": PATIENCE,
            **fields,
        }
    )


async def fetch(upstream: Upstream, request: UpstreamRequest) -> tuple[int, dict, bytes]:
    response = await upstream.open(request)
    try:
        body = b"".join([part async for part in response.chunks()])
    finally:
        await response.aclose()
    return response.status, dict(response.headers), body


async def _collect(response, got: list[bytes], each=lambda: None) -> None:
    async for part in response.chunks():
        got.append(part)
        each()


def replies(*parts: bytes):
    """Every request on every connection gets these bytes."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(*parts)

    return script


def replies_once(*parts: bytes):
    """One request gets these bytes, then the connection is closed."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(*parts)

    return script


# --- what is sent -------------------------------------------------------------------------------


async def test_request_carries_its_headers_and_no_others(transport):
    seen = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.send(answer())

    sent = (
        *JSON,
        (b"Authorization", b"Bearer k"),
        (b"connection", b"close"),
        (b"transfer-encoding", b"chunked"),
        (b"content-length", b"999"),
        (b"expect", b"100-continue"),
    )
    async with raw_server(script) as server, opened(transport) as upstream:
        await fetch(upstream, ask(server.url, b'{"a":1}', path="/v1/x?y=1", headers=sent))
    assert seen[0].line == b"POST /v1/x?y=1 HTTP/1.1"
    assert seen[0].body == b'{"a":1}'
    assert seen[0].headers == {
        b"host": server.url.removeprefix("http://").encode(),
        b"content-type": b"application/json",
        b"authorization": b"Bearer k",
        b"content-length": b"7",
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"headers": ((b"x", b"a\r\ncontent-length: 3"),)},
        {"headers": ((b"x", b"a\nb"),)},
        {"headers": ((b"x\r\ny", b"a"),)},
        {"headers": ((b"x", b"a\0"),)},
        {"path": "/a b"},
        {"path": "/a\r\nx: y"},
        {"path": "a"},
        {"base_url": "ftp://127.0.0.1:1"},
        {"base_url": "http://"},
        {"base_url": "http://127.0.0.1:99999"},
        {"base_url": "http://user@127.0.0.1:1"},
    ],
)
async def test_request_that_could_be_misread_is_not_sent(transport, fields):
    async with raw_server(replies(answer())) as server, opened(transport) as upstream:
        request = ask(server.url, **fields)
        with pytest.raises(UpstreamFailed) as caught:
            await upstream.open(request)
        assert caught.value.extra["sent"] is False
        assert server.peers == []


async def test_large_request_body_arrives_whole(transport):
    body = bytes(range(256)) * 40_000  # 10 MB
    seen = []

    async def script(peer: Peer) -> None:
        seen.append((await peer.request()).body)
        await peer.send(answer())

    async with raw_server(script) as server, opened(transport) as upstream:
        assert (await fetch(upstream, ask(server.url, body)))[0] == 200
    assert seen == [body]


async def test_answer_before_the_whole_request_was_read(transport):
    async def script(peer: Peer) -> None:
        await peer.head()
        await peer.send(answer(b"too large", status=b"413 Payload Too Large"))
        await peer.until_gone()

    async with raw_server(script) as server, opened(transport) as upstream:
        status, _, body = await fetch(upstream, ask(server.url, bytes(3_000_000)))
        assert (status, body) == (413, b"too large")


# --- what comes back ----------------------------------------------------------------------------


async def test_plain_answer(transport):
    data = answer(b'{"x":1}', b"X-Thing: Yes", status=b"404 Not Found")
    async with raw_server(replies(data)) as server, opened(transport) as upstream:
        status, headers, body = await fetch(upstream, ask(server.url))
    assert (status, body) == (404, b'{"x":1}')
    assert headers[b"x-thing"] == b"Yes"
    assert headers[b"content-length"] == b"7"


SPLIT_CASES = {
    "length": answer(b'{"x":1}'),
    "chunked": STREAM_HEAD + chunk(b"ab") + chunk(EVENT) + LAST_CHUNK,
    "trailers": STREAM_HEAD + b"2;x=y\r\nab\r\n0\r\nx-t: 1\r\n\r\n",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\na: b\r\n\r\n" + answer(b"ok"),
}


@pytest.mark.parametrize("case", SPLIT_CASES)
async def test_answer_split_at_every_byte(transport, case):
    data = SPLIT_CASES[case]
    cuts = iter(range(1, len(data)))

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            cut = next(cuts)
            await peer.send(data[:cut])
            await asyncio.sleep(0.001)
            await peer.send(data[cut:])

    async with raw_server(script) as server, opened(transport) as upstream:
        answers = {(await fetch(upstream, ask(server.url)))[::2] for _ in range(1, len(data))}
    expected = {"length": b'{"x":1}', "chunked": b"ab" + EVENT, "trailers": b"ab", "interim": b"ok"}
    assert answers == {(200, expected[case])}


async def test_answer_byte_by_byte(transport):
    data = STREAM_HEAD + chunk(EVENT) + LAST_CHUNK
    parts = [data[i : i + 1] for i in range(len(data))]
    async with raw_server(replies_once(*parts)) as server, opened(transport) as upstream:
        assert (await fetch(upstream, ask(server.url)))[2] == EVENT


async def test_each_chunk_is_delivered_before_the_next_is_sent(transport):
    received = asyncio.Semaphore(0)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        for number in range(5):
            await peer.send(chunk(b"data: %d\n\n" % number))
            await received.acquire()
        await peer.send(LAST_CHUNK)

    async with raw_server(script) as server, opened(transport) as upstream:
        response = await upstream.open(ask(server.url))
        got = []
        async with asyncio.timeout(PATIENCE):
            async for part in response.chunks():
                got.append(part)
                received.release()
        await response.aclose()
    assert got == [b"data: %d\n\n" % number for number in range(5)]


@pytest.mark.parametrize(
    ("method", "head"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
        ("POST", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("POST", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n"),
        ("POST", b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 0\r\n\r\n"),
    ],
)
async def test_answer_without_a_body(transport, method, head):
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head)
        await peer.until_gone()

    async with raw_server(script) as server, opened(transport) as upstream:
        body = b"{}" if method == "POST" else b""
        _, _, got = await fetch(upstream, ask(server.url, body, method=method))
        assert got == b""


async def test_body_that_ends_with_the_connection(transport):
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
    script = replies_once(head, b"some ", b"words")
    async with raw_server(script) as server, opened(transport) as upstream:
        assert (await fetch(upstream, ask(server.url)))[2] == b"some words"


async def test_large_answer_arrives_whole(transport):
    body = bytes(range(256)) * 40_000
    pieces = [chunk(body[i : i + 100_000]) for i in range(0, len(body), 100_000)]
    data = (STREAM_HEAD, *pieces, LAST_CHUNK)
    async with raw_server(replies_once(*data)) as server, opened(transport) as upstream:
        assert (await fetch(upstream, ask(server.url)))[2] == body
        assert len(server.peers) == 1


# --- failures -----------------------------------------------------------------------------------


async def test_nobody_listens(transport):
    async with opened(transport) as upstream:
        with pytest.raises(UpstreamFailed) as caught:
            await upstream.open(ask(_free_port_url()))
    assert caught.value.extra["sent"] is False


def _free_port_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


async def test_connection_not_accepted_in_time(transport):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        url = f"http://127.0.0.1:{address[1]}"
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:  # nobody accepts, so the queue is full and the next one waits
            filler.setblocking(False)
            filler.connect_ex(address)
        async with opened(transport) as upstream:
            with pytest.raises(UpstreamTimeout) as caught:
                await upstream.open(ask(url, connect_timeout=0.2))
        for filler in fillers:
            filler.close()
    assert caught.value.extra["sent"] is False


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n",
    ],
)
async def test_closed_before_the_head(transport, data):
    async with raw_server(replies_once(data)) as server, opened(transport) as upstream:
        with pytest.raises(UpstreamFailed) as caught:
            await upstream.open(ask(server.url))
    assert caught.value.extra["sent"] is True


@pytest.mark.parametrize(
    ("data", "before"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc", b"abc"),
        (STREAM_HEAD + chunk(b"abc"), b"abc"),
        (STREAM_HEAD + b"5\r\nabc", b"abc"),
        (STREAM_HEAD + chunk(b"abc") + b"0\r\n", b"abc"),
    ],
)
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_closed_inside_the_body(transport, data, before, how):
    told = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(data)
        await told.wait()
        getattr(peer, how)()

    async with raw_server(script) as server, opened(transport) as upstream:
        response = await upstream.open(ask(server.url))
        got: list[bytes] = []
        with pytest.raises(UpstreamFailed):
            await _collect(response, got, told.set)
        await response.aclose()
        assert b"".join(got) == before


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 300_000 + b"\r\n\r\n",
    ],
)
async def test_ambiguous_head_is_refused(transport, data):
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(data)
        await peer.until_gone()

    async with raw_server(script) as server, opened(transport) as upstream:
        with pytest.raises(UpstreamFailed):
            await upstream.open(ask(server.url))
        async with asyncio.timeout(PATIENCE):
            await server.peers[0].gone.wait()


@pytest.mark.parametrize("data", [b"zz\r\nab\r\n", b"-2\r\nab\r\n", b"f" * 40 + b"\r\nab\r\n"])
async def test_wrong_chunk_is_refused(transport, data):
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD + chunk(b"ok"))
        await peer.send(data)
        await peer.until_gone()

    async with raw_server(script) as server, opened(transport) as upstream:
        with pytest.raises(UpstreamFailed):
            await fetch(upstream, ask(server.url))


# --- time ---------------------------------------------------------------------------------------


async def test_no_head_in_time(transport):
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.until_gone()

    async with raw_server(script) as server, opened(transport) as upstream:
        with pytest.raises(UpstreamTimeout) as caught:
            await upstream.open(ask(server.url, first_byte_timeout=0.05))
        async with asyncio.timeout(PATIENCE):
            await server.peers[0].gone.wait()
    assert caught.value.extra["sent"] is True


async def test_silence_inside_the_body(transport):
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD + chunk(b"ab"))
        await peer.until_gone()

    async with raw_server(script) as server, opened(transport) as upstream:
        response = await upstream.open(ask(server.url, idle_timeout=0.05))
        got: list[bytes] = []
        with pytest.raises(UpstreamTimeout):
            await _collect(response, got)
        await response.aclose()
        async with asyncio.timeout(PATIENCE):
            await server.peers[0].gone.wait()
    assert got == [b"ab"]


async def test_a_slow_worker_that_keeps_going_is_not_late(transport):
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        for _ in range(6):
            await asyncio.sleep(0.2)
            await peer.send(chunk(b"ab"))
        await peer.send(LAST_CHUNK)

    async with raw_server(script) as server, opened(transport) as upstream:
        request = ask(server.url, idle_timeout=1.0, first_byte_timeout=1.0)
        assert (await fetch(upstream, request))[2] == b"ab" * 6


async def test_a_slow_reader_is_not_the_worker_being_late(transport):
    rested = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD, chunk(b"a"))
        await rested.wait()
        await peer.send(chunk(b"b") + LAST_CHUNK)

    async with raw_server(script) as server, opened(transport) as upstream:
        response = await upstream.open(ask(server.url, idle_timeout=0.5))
        got = []
        async for part in response.chunks():
            got.append(part)
            if not rested.is_set():
                await asyncio.sleep(0.8)
                rested.set()
        await response.aclose()
    assert b"".join(got) == b"ab"


# --- giving up ----------------------------------------------------------------------------------


async def test_cancelled_open_breaks_the_connection(transport):
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await peer.until_gone()

    async with raw_server(script) as server, opened(transport) as upstream:
        task = asyncio.ensure_future(upstream.open(ask(server.url)))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE):
            await server.peers[0].gone.wait()


@pytest.mark.parametrize("cancelled", [False, True])
async def test_unread_answer_breaks_the_connection(transport, cancelled):
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD + chunk(b"ab"))
        await peer.until_gone()

    async def read() -> None:
        response = await upstream.open(ask(server.url))
        try:
            async for _ in response.chunks():
                first.set()
                if not cancelled:
                    break
        finally:
            await response.aclose()
            await response.aclose()  # twice is once

    first = asyncio.Event()
    async with raw_server(script) as server, opened(transport) as upstream:
        task = asyncio.ensure_future(read())
        await first.wait()
        if cancelled:
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait([task])
        async with asyncio.timeout(PATIENCE):
            await server.peers[0].gone.wait()
        # The transport is none the worse for it.
        with pytest.raises(UpstreamFailed):
            await upstream.open(ask(_free_port_url()))


async def test_slow_reader_holds_the_worker_back(transport):
    piece, total = chunk(bytes(65_000)), 1_000
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(STREAM_HEAD)
        for _ in range(total):
            await peer.send(piece)
            sent += 1
        await peer.send(LAST_CHUNK)

    async with raw_server(script) as server, opened(transport) as upstream:
        response = await upstream.open(ask(server.url))
        chunks = response.chunks()
        size = len(await anext(chunks))
        await _until_still(lambda: sent)
        assert sent * 65_000 < 20_000_000  # the kernel's socket buffers and one of ours, not 65 MB
        async for part in chunks:
            size += len(part)
        await response.aclose()
    assert (sent, size) == (total, total * 65_000)


async def _until_still(read) -> None:
    """Wait until `read()` stays the same for a while."""
    last = None
    while read() != last:
        last = read()
        await asyncio.sleep(0.2)


# --- the same connection again ------------------------------------------------------------------


async def test_plain_answers_share_a_connection(transport):
    async with raw_server(replies(answer(b"ok"))) as server, opened(transport) as upstream:
        for _ in range(20):
            assert (await fetch(upstream, ask(server.url)))[2] == b"ok"
        assert len(server.peers) == 1


async def test_parallel_exchanges_get_their_own_answers(transport):
    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await asyncio.sleep(0.001 * (peer.number % 5))
            await peer.send(answer(request.body))

    async with raw_server(script) as server, opened(transport) as upstream:

        async def talk(name: int) -> None:
            for turn in range(5):
                body = b"%d/%d" % (name, turn)
                assert (await fetch(upstream, ask(server.url, body)))[2] == body

        async with asyncio.TaskGroup() as group:
            for name in range(20):
                group.create_task(talk(name))
        assert len(server.peers) <= 20


@pytest.mark.parametrize(
    "data",
    [
        STREAM_HEAD + chunk(b"ab") + LAST_CHUNK,  # llama-server closes after a stream
        answer(b"ab", b"Connection: close"),
        answer(b"ab").replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
)
async def test_connection_that_will_close_is_not_used_again(transport, data):
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(data)
        await peer.until_gone()

    async with raw_server(script) as server, opened(transport) as upstream:
        for _ in range(3):
            assert (await fetch(upstream, ask(server.url)))[2] == b"ab"
        assert len(server.peers) == 3


async def test_connection_closed_while_idle_is_replaced(transport):
    closed = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"ab"))
        peer.close()
        await peer.writer.wait_closed()
        closed.set()

    async with raw_server(script) as server, opened(transport) as upstream:
        for _ in range(5):
            assert (await fetch(upstream, ask(server.url)))[2] == b"ab"
            await closed.wait()
            closed.clear()
        assert len(server.peers) == 5


async def test_workers_do_not_share_connections(transport):
    async with (
        raw_server(replies(answer(b"one"))) as one,
        raw_server(replies(answer(b"two"))) as two,
        opened(transport) as upstream,
    ):
        for _ in range(3):
            assert (await fetch(upstream, ask(one.url)))[2] == b"one"
            assert (await fetch(upstream, ask(two.url)))[2] == b"two"
        assert (len(one.peers), len(two.peers)) == (1, 1)


async def test_closing_the_transport_closes_idle_connections(transport):
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"ab"))
        await peer.until_gone()

    async with raw_server(script) as server:
        async with opened(transport) as upstream:
            await fetch(upstream, ask(server.url))
            assert not server.peers[0].gone.is_set()
        async with asyncio.timeout(PATIENCE):
            await server.peers[0].gone.wait()


def test_unknown_transport_is_named():
    with pytest.raises(
        ValueError, match="unknown transport 'carrier-pigeon'; known: http11, httpx"
    ):
        build_upstream("carrier-pigeon")
