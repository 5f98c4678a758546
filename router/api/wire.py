"""Connections of clients: generating requests served on the spot, everything else by uvicorn.

A request that is not a plain POST to a generating endpoint (another path, a coded or very large
body, Expect, a page's script, or not HTTP at all) hands its connection over to uvicorn's
own protocol with every byte from that request on, and for good: what is unusual is uvicorn's to
judge.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import httptools
import structlog

from router.core import GatewayError
from router.relay.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    Serve = Callable[[WireClient], Coroutine[Any, Any, None]]

log = structlog.get_logger(__name__)

MAX_HEAD: Final = 16_384  # bytes; a larger head is uvicorn's
MAX_BODY: Final = 1_048_576  # bytes held before anybody is asked for a key; a larger one is too
MAX_WAITING: Final = 262_144  # bytes of further requests that are read while one is served
KEEP_ALIVE_S: Final = 75.0  # an idle connection is kept so long, as most proxies expect
_NOT_OURS: Final = frozenset((b"expect", b"origin", b"transfer-encoding"))  # CORS too
_UPGRADE: Final = re.compile(rb"\r\nupgrade(?=:)", re.IGNORECASE)
_TIMER_SLACK: Final = 0.01  # seconds by which a timer may come early
_PARSER_ERRORS: Final = (httptools.HttpParserError, httptools.HttpParserUpgrade)


async def _nobody(client: WireClient) -> None:
    """Before the first request."""


class ServerState(Protocol):
    """What uvicorn's server knows of its connections; it waits for them when it ends."""

    total_requests: int
    connections: set[Any]
    tasks: set[asyncio.Task[None]]
    default_headers: list[tuple[bytes, bytes]]


class _Head:
    """The last head that llhttp has read (its callbacks; names in lower case, the last wins)."""

    __slots__ = ("headers", "url")

    def __init__(self) -> None:
        self.url = b""
        self.headers: dict[bytes, bytes] = {}

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = {}

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value


class WireProtocol(asyncio.Protocol):
    """One client's connection; requests on it are served one after the other."""

    __slots__ = (
        "_client",
        "_ending",
        "_head",
        "_held",
        "_hot",
        "_is_http11",
        "_keep",
        "_loop",
        "_missing",
        "_next",
        "_other",
        "_parser",
        "_rendered",
        "_rows",
        "_since",
        "_state",
        "_timer",
        "_transport",
        "_waiters",
        "has_room",
    )

    def __init__(
        self,
        hot: Callable[[], Mapping[bytes, Serve]],
        state: ServerState,
        other: Callable[[], asyncio.Protocol],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`hot` are the request lines served here; `other` makes the protocol of all others."""
        self._hot = hot
        self._state = state
        self._other = other
        self._loop = loop
        self._head = _Head()
        self._parser: Any = httptools.HttpRequestParser(self._head)
        self._transport: asyncio.Transport | None = None
        self._held: list[bytes] = []  # bytes not yet understood
        self._missing = 0  # bytes of the body still to come, the head being read
        self._client: WireClient | None = None  # whose request is being served
        self._next: tuple[Serve, int, int] = _nobody, 0, 0  # and its head's and body's bytes
        self._rendered: list[tuple[bytes, bytes]] | None = None  # the server's headers
        self._rows = b""  # and their lines
        self._keep = self._is_http11 = True
        self._ending = False
        self.has_room = True
        self._waiters: list[asyncio.Future[None]] = []
        self._since = 0.0  # when the client was last heard of or answered
        self._timer: asyncio.TimerHandle | None = None

    # --- asyncio.Protocol -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._state.connections.add(self)
        self._since = self._loop.time()
        self._timer = self._loop.call_later(KEEP_ALIVE_S, self._on_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._transport = None
        client, self._client = self._client, None
        if client is not None:
            client.lost()
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        self._since = self._loop.time()
        if self._client is not None:
            self._wait(data)
        elif self._missing:
            self._held.append(data)
            self._missing = max(0, self._missing - len(data))
            if not self._missing:
                self._serve(self._take())
        else:
            self._held.append(data)
            self._begin(self._take())

    def pause_writing(self) -> None:
        self.has_room = False

    def resume_writing(self) -> None:
        self.has_room = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
        if self._client is not None and self._client.on_room is not None:
            self._client.on_room()

    # --- what the exchange asks for -------------------------------------------------------------

    @property
    def own_headers(self) -> bytes:
        """The server's headers, and that the connection ends if it does."""
        headers = self._state.default_headers
        if headers is not self._rendered:  # the server makes a new list once a second
            self._rendered = headers
            self._rows = b"".join([b"%b: %b\r\n" % header for header in headers])
        rows = self._rows
        return rows if self._keep else rows + b"connection: close\r\n"

    def write(self, data: bytes) -> None:
        """Send, without waiting; nothing once the client is gone."""
        if self._transport is not None:
            self._transport.write(data)

    async def drained(self) -> None:
        """Return when there is room, or nobody left."""
        if not self.has_room and self._transport is not None:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def create_task(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that the server waits for when it ends, and cancels when that takes too long."""
        task = self._loop.create_task(coroutine)
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)
        return task

    def finished(self) -> None:
        """The answer is complete: the next request, or the end."""
        self._state.total_requests += 1
        self._client = None
        self._since = self._loop.time()
        if self._transport is None:
            return
        if not self._keep:
            self._transport.close()
        elif self._held:
            self._transport.resume_reading()
            self._begin(self._take())

    # --- what the server asks for ---------------------------------------------------------------

    def shutdown(self) -> None:
        """End: at once, or with the answer under way."""
        if self._client is not None or self._missing:
            self._keep, self._ending = False, True
        elif self._transport is not None:
            self._transport.close()

    # --- requests -------------------------------------------------------------------------------

    def _take(self) -> bytes:
        data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        self._held = []
        return data

    def _wait(self, data: bytes) -> None:
        """A pipelined request: later, and no more than is reasonable."""
        self._held.append(data)
        if sum(map(len, self._held)) > MAX_WAITING and self._transport is not None:
            self._transport.pause_reading()

    def _begin(self, data: bytes) -> None:
        """Serve the request that `data` begins with, wait for its rest, or let uvicorn have it."""
        size = data.find(b"\r\n\r\n") + 4
        if size < 4:
            if len(data) <= MAX_HEAD and self._may_be_hot(data):
                self._held = [data]
            else:
                self._hand_over(data)
            return
        data = _without_offers(data, size)
        serve = self._hot().get(data[: data.find(b"\r\n")])
        length = self._read_head(data[:size]) if serve is not None and size <= MAX_HEAD else None
        if serve is None or length is None:
            self._hand_over(data)
            return
        self._next = serve, size, length
        self._missing = max(0, size + length - len(data))
        if self._missing:
            self._held = [data]
        else:
            self._serve(data)

    def _may_be_hot(self, data: bytes) -> bool:
        lines = (line + b"\r\n" for line in self._hot())
        return _has_whole_lines(data) and any(
            line.startswith(data) or data.startswith(line) for line in lines
        )

    def _read_head(self, head: bytes) -> int | None:
        """The length of the body that follows; None when the request is uvicorn's."""
        if not _has_whole_lines(head):
            return None
        try:
            self._parser.feed_data(head)
        except _PARSER_ERRORS:
            return None
        self._is_http11 = self._parser.get_http_version() == "1.1"
        headers = self._head.headers
        # After a head without a body llhttp has forgotten what it said of the connection.
        leaves = b"close" in headers.get(b"connection", b"").lower()
        self._keep = self._is_http11 and self._parser.should_keep_alive() and not leaves
        length = int(headers.get(b"content-length", b"-1"))
        if not 0 <= length <= MAX_BODY or not _NOT_OURS.isdisjoint(headers):
            return None
        return length

    def _serve(self, data: bytes) -> None:
        """Begin the request that has been read whole; what follows it waits."""
        serve, size, length = self._next
        body = data[size : size + length]
        if length:
            self._parser.feed_data(body)  # so that it expects the next head
        if len(data) > size + length:
            self._held = [data[size + length :]]
        self._keep = self._keep and not self._ending
        headers, chunked = self._head.headers, self._is_http11
        self._client = client = WireClient(self, headers, body, chunked=chunked)
        client.served_by = task = self._loop.create_task(self._run(serve, client))
        self._state.tasks.add(task)

    async def _run(self, serve: Serve, client: WireClient) -> None:
        broken = False
        try:
            await serve(client)
        except Exception:
            log.exception("request_failed")
            broken = not client.started and self._client is client
        finally:
            if not broken:
                self._close_unanswered(client)
            task, client.served_by = client.served_by, None  # they hold each other
            if task is not None:
                self._state.tasks.discard(task)  # here it spares the task a callback
        if broken:
            await client.refuse(GatewayError("internal error"), [])
            self._close_unanswered(client)

    def _close_unanswered(self, client: WireClient) -> None:
        if self._client is client and self._transport is not None:
            self._transport.close()

    def _hand_over(self, data: bytes) -> None:
        transport, other = self._transport, self._other()
        if transport is None:
            return
        self._leave()
        self._transport = None
        other.connection_made(transport)
        transport.set_protocol(other)
        other.data_received(data)

    # --- the connection's end -------------------------------------------------------------------

    def _leave(self) -> None:
        self._state.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def _on_timer(self) -> None:
        idle = self._loop.time() - self._since
        if self._client is None and idle > KEEP_ALIVE_S - _TIMER_SLACK:
            if self._transport is not None:
                self._transport.close()
            return
        wait = KEEP_ALIVE_S - idle if self._client is None else KEEP_ALIVE_S
        self._timer = self._loop.call_later(wait, self._on_timer)


def _without_offers(data: bytes, size: int) -> bytes:
    """`data` with the head's offers to speak another protocol under a name that means nothing.

    None is taken, and llhttp would take the body of such a request for that other protocol.
    """
    if data.find(b"pgrade:", 0, size) < 0 and data.find(b"PGRADE:", 0, size) < 0:
        return data  # of any other spelling llhttp complains, and the request is uvicorn's
    return _UPGRADE.sub(b"\r\nx-offer", data[:size]) + data[size:]  # of the same length


def _has_whole_lines(head: bytes) -> bool:
    """Whether every line ends with CR and LF, so that we and llhttp see the same end of a head."""
    return head.count(b"\n") == head.count(b"\r\n")


def request_lines(paths: Mapping[str, Serve]) -> dict[bytes, Serve]:
    """`paths` by the request lines that `WireProtocol` takes."""
    return {
        b"POST %b HTTP/1.%d" % (path.encode(), minor): serve
        for path, serve in paths.items()
        for minor in (1, 0)
    }
