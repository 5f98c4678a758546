"""One persistent HTTP/1.1 connection: a socket, its parser, and one exchange at a time.

httptools runs llhttp in its strict setting; `_Framing` refuses what that still lets through.
A connection keeps one timer for all its exchanges, re-armed only when it fires.
"""

from __future__ import annotations

import asyncio
import select
import socket
from typing import TYPE_CHECKING, Any, Protocol, cast

import httptools

from router.core.errors import UpstreamFailed, UpstreamTimeout
from router.upstream.exchange import HTTP11Limits, HTTP11Response

if TYPE_CHECKING:
    from router.upstream.base import UpstreamRequest

_JOIN_LIMIT = 16_384  # a body up to here is copied behind its head: one write, one system call
_PLAIN_LINE = 32  # bytes of framing per chunk (size line, CRLFs) or header that need no reason
_PARSER_ERRORS = (httptools.HttpParserError, httptools.HttpParserUpgrade)
_PROBATION = 0.05  # seconds; llama-server's close follows a stream's end within a millisecond
_TIMER_SLACK = 0.002  # seconds; uvloop's timers count whole milliseconds and may fire early


class Home(Protocol):
    """The pool a connection belongs to."""

    limits: HTTP11Limits
    outlives_streams: bool  # the worker was seen to keep a connection after a stream

    def joined(self) -> None:
        """A connection was made."""
        ...

    def put(self, connection: Connection) -> None:
        """Take a connection that may carry another request."""
        ...

    def try_out(self, connection: Connection) -> None:
        """Hold a connection that carried a stream, until it is known whether it lives on."""
        ...

    def forget(self, connection: Connection) -> None:
        """The connection is closed."""
        ...


class Connection(asyncio.Protocol):
    """One socket and its parser. The `on_` methods are httptools callbacks and never raise."""

    __slots__ = (
        "_body",
        "_complete",
        "_excess",
        "_exchange",
        "_fault",
        "_head_only",
        "_head_raw",
        "_head_size",
        "_headers",
        "_idle_since",
        "_interim",
        "_parser",
        "_parts",
        "_poll",
        "_pool",
        "_reusable",
        "_stream",
        "_timer",
        "_timer_at",
        "_transport",
        "_until_eof",
        "deadline",
        "loop",
        "paused",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: Home) -> None:
        self.loop = loop
        self.paused = False
        self.deadline = 0.0
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._exchange: HTTP11Response | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._idle_since = 0.0
        self._parts: list[bytes] = []
        self._reset()

    def _reset(self, *, head_only: bool = False) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_size = 0  # of header lines seen
        self._head_raw = 0  # of reads that ended inside the head
        self._head_only = head_only
        self._body = False  # the head is complete: what follows is body and trailers
        self._interim = False
        self._until_eof = False
        self._reusable = False
        self._stream = False
        self._complete = False
        self._fault: str | None = None
        self._excess = 0

    # --- what the pool and the exchange ask for -------------------------------------------------

    def send(self, head: bytes, request: UpstreamRequest) -> HTTP11Response:
        """Write one request. The answer to it is the exchange returned."""
        transport = cast("asyncio.Transport", self._transport)
        self._reset(head_only=request.method == "HEAD")
        exchange = HTTP11Response(self, request.idle_timeout, self._pool.limits)
        self._exchange = exchange
        self._arm(request.first_byte_timeout, request.idle_timeout)
        if len(request.body) <= _JOIN_LIMIT:
            transport.write(head + request.body)
        else:
            transport.write(head)
            transport.write(request.body)
        return exchange

    def is_fresh(self) -> bool:
        """Whether an idle connection may carry a request: young, open, and nothing to read.

        A readable idle socket is one the worker closed, or one with bytes nobody asked for. The
        event loop may not have looked yet, hence the poll; with it a request is never written to
        a connection that was closed while idle.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        if self.loop.time() - self._idle_since > self._pool.limits.idle_seconds:
            return False
        return self._poll is None or not self._poll.poll(0)

    def abort(self) -> None:
        """Break the connection now; bytes not yet written are dropped."""
        self._exchange = None
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        if self._transport is not None and not self.paused:
            self.paused = True
            self._transport.pause_reading()

    def resume(self, exchange: HTTP11Response) -> None:
        """Read on, if the connection still serves `exchange`."""
        if exchange is self._exchange:
            self._unpause()

    def _unpause(self) -> None:
        self.paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # --- time -----------------------------------------------------------------------------------

    def _arm(self, seconds: float, next_phase: float) -> None:
        """Begin a phase of `seconds`, with one timer for it and for the phase that follows.

        A timer that fires too early re-arms itself, so a late one is never needed.
        """
        now = self.loop.time()
        self.deadline = now + seconds
        when = now + min(seconds, next_phase)
        if self._timer is None or self._timer_at > when:
            self._set_timer(when)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self.loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        exchange = self._exchange
        if exchange is None:
            return
        now = self.loop.time()
        if self.deadline > now + _TIMER_SLACK:
            self._set_timer(self.deadline)
        elif exchange.is_awaited:
            self._fail(UpstreamTimeout("the worker sent nothing in time", extra={"sent": True}))
        else:
            self._set_timer(now + exchange.idle_timeout)

    # --- asyncio.Protocol -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        self._pool.joined()
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll: Any = None
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(sock.fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:  # bytes nobody asked for
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except _PARSER_ERRORS as error:
            self._fault = self._fault or str(error)
        parts = self._parts
        if parts:
            chunk = parts[0] if len(parts) == 1 else b"".join(parts)
            self._excess = len(data) - len(chunk) - len(parts) * _PLAIN_LINE - self._head_size
            self._head_size = 0
            parts.clear()
            exchange.push(chunk, self._is_whole())
            if self._exchange is not exchange:  # its reader has given it up
                return
        elif self._body:
            self._excess += len(data) - self._head_size
            self._head_size = 0
        else:
            self._head_raw += len(data)
        if self._is_whole():
            self._end(exchange)
        elif self._fault is not None or not self._body or self._excess > 0:
            self._check()

    def eof_received(self) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        if self._until_eof:
            self._exchange = None
            exchange.finish()
        else:
            self._fail(_lost())

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = self._parser = self._poll = None  # the parser holds us: break the cycle
        if self._timer is not None:
            self._timer.cancel()
        self._pool.forget(self)
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.finish(_lost())

    # --- httptools callbacks --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._complete:  # a second answer to one request
            self._fault = "bytes after the end of the response"

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._body:
            return  # a trailer: nothing needs it, its size counts as framing
        self._head_size += len(name) + len(value) + _PLAIN_LINE
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        exchange, parser = self._exchange, self._parser
        if exchange is None or self._complete:
            return
        status = parser.get_status_code()
        framing = _Framing(parser, status, self._headers)
        self._interim = status < 200
        self._fault = framing.fault or self._fault
        if self._fault is not None or self._is_oversize():
            return
        if self._interim:
            self._headers = []
        else:
            self._open(exchange, status, framing)

    def on_body(self, data: bytes) -> None:
        if not self._complete:
            self._parts.append(data)

    def on_message_complete(self) -> None:
        if self._body:
            self._complete = True

    # --- one answer's end -----------------------------------------------------------------------

    def _open(self, exchange: HTTP11Response, status: int, framing: _Framing) -> None:
        self._until_eof = not framing.framed and status not in (204, 304)
        self._stream = framing.stream
        self._reusable = not self._head_only and self._parser.should_keep_alive()
        self._body = True
        self._complete = self._head_only  # llhttp would wait for the body this head describes
        self.deadline = self.loop.time() + exchange.idle_timeout
        exchange.begin(status, self._headers)

    def _end(self, exchange: HTTP11Response) -> None:
        transport = self._transport
        self._exchange = None
        exchange.finish()
        if self.paused:
            self._unpause()
        if transport is None:
            return
        if self._reusable and self._fault is None and not transport.get_write_buffer_size():
            self._rest()
        else:
            transport.abort()

    def _rest(self) -> None:
        """Back to the pool; after a stream only where the worker is known to keep connections.

        llama-server closes after a stream although it advertises keep-alive: a request written
        before that is noticed would be lost.
        """
        self._idle_since = self.loop.time()
        if not self._stream or self._pool.outlives_streams:
            self._pool.put(self)
        else:
            self._pool.try_out(self)
            self.loop.call_later(_PROBATION, self._pass_probation)

    def _pass_probation(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._pool.outlives_streams = True
            self._pool.put(self)

    def _is_whole(self) -> bool:
        return self._complete and self._excess <= self._pool.limits.chunk_line

    def _check(self) -> None:
        if self._fault is not None or self._is_oversize():
            self._fail(self._refusal())

    def _is_oversize(self) -> bool:
        limits = self._pool.limits
        if self._body:
            return self._excess > limits.chunk_line
        return self._head_size > limits.head or self._head_raw > limits.head

    def _refusal(self) -> UpstreamFailed:
        reason = self._fault or ("chunk line too long" if self._body else "headers too large")
        return UpstreamFailed(f"the worker's answer is not valid HTTP: {reason}")

    def _fail(self, error: UpstreamFailed | UpstreamTimeout) -> None:
        exchange = self._exchange
        self.abort()
        if exchange is not None:
            exchange.finish(error)


def _lost() -> UpstreamFailed:
    return UpstreamFailed("the worker closed the connection early", extra={"sent": True})


class _Framing:
    """How a head says its body ends, and what llhttp's strict setting lets through but we do not.

    fault: that, in words, or None. framed: the body's end is stated. stream: an event stream.
    """

    __slots__ = ("fault", "framed", "stream")

    def __init__(self, parser: Any, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.framed = self.stream = False
        self.fault: str | None = None
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self.fault = f"HTTP version {version}"
        elif status == 101 or status < 100:
            self.fault = f"unexpected status {status}"
        for name, value in headers:
            if name == b"content-length":
                self._state(status < 200)
            elif name == b"transfer-encoding":
                plain = value.lower() == b"chunked" and version == "1.1"
                self._state(status < 200)
                self.fault = self.fault if plain else "a transfer coding other than chunked"
            elif name == b"content-type":
                self.stream = value[:17].lower() == b"text/event-stream"

    def _state(self, is_interim: bool) -> None:
        if self.framed or is_interim:
            self.fault = "a length stated twice, or where there is no body"
        self.framed = True
