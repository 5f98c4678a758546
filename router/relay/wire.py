"""The client of one exchange on its own socket: no ASGI between, no task that only watches.

The counterpart of `router.relay.client` for connections that `router.api.wire` serves itself.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

from router.core import TooLarge
from router.relay.attended import ClientGone
from router.relay.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from router.relay.client import Headers, Work

_STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode())
    for status in HTTPStatus
}
_CHUNKED: Final = (b"transfer-encoding", b"chunked")
_LAST_CHUNK: Final = b"0\r\n\r\n"


class Line(Protocol):
    """What an exchange needs of the connection that carries it."""

    @property
    def has_room(self) -> bool:
        """Whether the client takes what is sent, so that more may be."""
        ...

    @property
    def own_headers(self) -> bytes:
        """Header lines that every answer on this connection begins with, each ended by CRLF."""
        ...

    def write(self, data: bytes) -> None:
        """Send, without waiting."""
        ...

    async def drained(self) -> None:
        """Return when there is room, or nobody left."""
        ...

    def finished(self) -> None:
        """The answer is complete."""
        ...

    def create_task(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that the server knows of."""
        ...


class WireClient(Client):
    """A client whose whole request has been read before it is served."""

    __slots__ = (
        "_beside",
        "_body",
        "_chunked",
        "_gone",
        "_head",
        "_line",
        "_task",
        "on_room",
        "served_by",
    )

    def __init__(
        self, line: Line, headers: dict[bytes, bytes], body: bytes, *, chunked: bool = True
    ) -> None:
        """Not `chunked` is for HTTP/1.0: what has no length ends with the connection."""
        self.headers = headers
        self.method = "POST"
        self.request_id = ""
        self.received_at = 0.0
        self.started = False
        self.on_room: Callable[[], None] | None = None  # called when `push` may go on
        self.served_by: asyncio.Task[Any] | None = None  # the task, where it is known
        self._over = False
        self._line = line
        self._body = body
        self._chunked = chunked
        self._head = b""  # status and headers, sent together with what follows them
        self._gone = False
        self._task: asyncio.Task[Any] | None = None  # to be cancelled when the client goes
        self._beside: list[asyncio.Task[None]] = []

    async def read_body(self, limit: int) -> bytes:
        """The whole body; see `Client.read_body`."""
        if len(self._body) > limit:
            raise TooLarge(f"the body is larger than {limit} bytes")
        return self._body

    # --- leaving --------------------------------------------------------------------------------

    async def attend(self, work: Work) -> None:
        """See `Client.attend`: the connection itself cancels the work."""
        if self._gone:
            raise ClientGone
        self._task = task = self.served_by or asyncio.current_task()
        try:
            await work(self)
        except asyncio.CancelledError:
            if self._was_left(task):
                raise ClientGone from None
            raise  # the server ends, perhaps as well: that comes first
        finally:
            self._task = None
            for one in self._beside:
                one.cancel()

    def _was_left(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether a cancellation is the client's alone."""
        return self._gone and task is not None and task.uncancel() == 0

    def create_task(self, coroutine: Coroutine[Any, Any, None], /) -> asyncio.Task[None]:
        """A task that ends with the exchange."""
        task = self._line.create_task(coroutine)
        self._beside.append(task)
        return task

    def lost(self) -> None:
        """The connection is closed."""
        self._gone = True
        self.on_room = None
        if self._task is not None and not self._over:
            self._task.cancel()

    # --- sending --------------------------------------------------------------------------------

    async def start(self, status: int, headers: Headers) -> None:
        """Status and headers of an answer in chunks; sent with the first of them."""
        framed = [*headers, _CHUNKED] if self._chunked else headers
        self._head = render_head(status, self._line.own_headers, framed)
        self.started = True

    def push(self, chunk: bytes) -> bool:
        """Send a part of the body; False when the client should be given time (`on_room`)."""
        if not self._chunked:
            self._line.write(self._head + chunk)
            self._head = b""
        elif chunk:
            if self._head:
                self._line.write(b"%b%x\r\n%b\r\n" % (self._head, len(chunk), chunk))
                self._head = b""
            else:
                self._line.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        return self._line.has_room

    async def write(self, chunk: bytes) -> None:
        """Send a part of the body; returns when the client has room for more."""
        if not self.push(chunk):
            await self._line.drained()

    async def end(self, chunk: bytes = b"") -> None:
        """Send the last part of the body."""
        self._over = True
        if self._chunked:
            framed = b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b""
            chunk = framed + _LAST_CHUNK
        self._line.write(self._head + chunk)
        self._line.finished()

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole answer at once."""
        self._over = True
        framed = [*headers, (b"content-length", b"%d" % len(body))]
        self._line.write(render_head(status, self._line.own_headers, framed) + body)
        self.started = True
        self._line.finished()


def render_head(status: int, own: bytes, headers: Headers) -> bytes:
    """The head of an answer.

    Raises:
        ValueError: a header holds a line end or NUL, so it could smuggle a second answer.
    """
    rows = b"".join([b"%b: %b\r\n" % header for header in headers])
    if rows.count(b"\n") != len(headers) or rows.count(b"\r") != len(headers) or b"\0" in rows:
        raise ValueError("a header's value is not valid")
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return b"%b%b%b\r\n" % (line, own, rows)
