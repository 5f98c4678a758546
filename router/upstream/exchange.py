"""One HTTP/1.1 exchange: the answer's head, then its bytes, held until their reader takes them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from router.core.errors import UpstreamFailed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable


@dataclass(frozen=True, slots=True)
class HTTP11Limits:
    """Bounds on what one worker may make the gateway hold. Sizes in bytes."""

    head: int = 65_536  # header section, interim responses included; llama-server sends < 1 KiB
    chunk_line: int = 16_384  # one chunk-size line with its extensions, or the trailers
    high_water: int = 262_144  # stop reading the socket when this much waits for the consumer
    low_water: int = 65_536  # and go on reading below this
    idle_connections: int = 64  # kept per worker
    idle_seconds: float = 4.0  # cpp-httplib and uvicorn close an idle connection after 5 s


class Line(Protocol):
    """What an exchange needs of the connection that carries it."""

    loop: asyncio.AbstractEventLoop
    deadline: float
    paused: bool

    def abort(self) -> None:
        """Break the connection."""
        ...

    def pause(self) -> None:
        """Stop reading the socket."""
        ...

    def resume(self, exchange: HTTP11Response) -> None:
        """Read on, if the connection still serves `exchange`."""
        ...


class HTTP11Response:
    """An answer in the making; `status` and `headers` are set once `head` is done."""

    __slots__ = (
        "_buffered",
        "_connection",
        "_ended",
        "_error",
        "_high",
        "_last",
        "_low",
        "_queue",
        "_take",
        "_waiter",
        "head",
        "headers",
        "idle_timeout",
        "status",
    )

    def __init__(self, connection: Line, idle_timeout: float, limits: HTTP11Limits) -> None:
        self.status = 0
        self.headers: tuple[tuple[bytes, bytes], ...] = ()
        self.head: asyncio.Future[None] = connection.loop.create_future()
        self.idle_timeout = idle_timeout
        self._connection = connection
        self._high = limits.high_water
        self._low = limits.low_water
        self._queue: deque[bytes] = deque()
        self._buffered = 0
        self._waiter: asyncio.Future[None] | None = None
        self._take: Callable[[bytes], bool] | None = None
        self._last = b""  # what came together with the end, while `_take` is set
        self._ended = False
        self._error: Exception | None = None

    async def read(self) -> bytes:
        """The next chunk, one read of the socket; empty at the end.

        Raises:
            UpstreamFailed, UpstreamTimeout: as in `UpstreamResponse.chunks`.
        """
        while not self._queue:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return b""
            await self._more()
        chunk = self._queue.popleft()
        self._buffered -= len(chunk)
        if self._buffered <= self._low and self._connection.paused:
            self._connection.resume(self)
        return chunk

    def chunks(self) -> AsyncIterator[bytes]:
        """The body; see `UpstreamResponse.chunks`."""
        return _Chunks(self)

    @property
    def is_over(self) -> bool:
        """Whether the answer has come to its regular end and been read."""
        return self._ended and self._error is None and not self._queue

    def hold(self) -> None:
        """Stop reading until `resume`."""
        if not self._ended:
            self._connection.pause()

    async def pump(self, take: Callable[[bytes], bool]) -> bytes:
        """Give every chunk to `take` as it is read, no task in between, until the end.

        Where `take` returns False nothing more is read until `resume`. What came together with the
        end is returned instead, so that it can be sent together with whatever follows.

        Raises:
            UpstreamFailed, UpstreamTimeout: as in `chunks`; and whatever `take` raises.
        """
        queue = self._queue
        has_room = bool(queue) or not self._connection.paused
        while queue:
            chunk = queue.popleft()
            self._buffered -= len(chunk)
            if not queue and self._ended and self._error is None:
                return chunk
            has_room = take(chunk)
        if not has_room:
            self._connection.pause()
        elif self._connection.paused:
            self._connection.resume(self)
        if not self._ended:
            self._take = take
            try:
                await self._more()
            finally:
                self._take = None
        if self._error is not None:
            raise self._error
        return self._last

    def resume(self) -> None:
        """Read on for `pump`."""
        connection = self._connection
        if connection.paused:
            connection.deadline = connection.loop.time() + self.idle_timeout
            connection.resume(self)

    async def aclose(self) -> None:
        """Break the connection at once when the body was not read to its end."""
        self.break_off()
        self._queue.clear()

    def break_off(self) -> None:
        """Break the connection if it still serves this exchange; it may serve the next by now."""
        if not self._ended:
            self._connection.abort()
            self.finish(UpstreamFailed("the exchange was given up", extra={"sent": True}))

    @property
    def is_awaited(self) -> bool:
        """Whether the caller waits for the worker now: its own slowness is nobody else's."""
        if self._connection.paused:
            return False
        return self._waiter is not None or not self.head.done()

    def _more(self) -> asyncio.Future[None]:
        connection = self._connection
        self._waiter = waiter = connection.loop.create_future()
        connection.deadline = connection.loop.time() + self.idle_timeout
        return waiter

    def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """The head has arrived."""
        self.status = status
        self.headers = tuple(headers)
        if not self.head.done():  # else its caller was cancelled
            self.head.set_result(None)

    def push(self, chunk: bytes, is_last: bool = False) -> None:
        """Bytes of the body have arrived; `is_last`: the end with them, `finish` comes next."""
        if self._take is not None:
            self._hand(chunk, is_last, self._take)
            return
        self._queue.append(chunk)
        self._buffered += len(chunk)
        if self._waiter is not None:
            self._wake()
        elif self._buffered > self._high:
            self._connection.pause()

    def _hand(self, chunk: bytes, is_last: bool, take: Callable[[bytes], bool]) -> None:
        connection = self._connection
        connection.deadline = connection.loop.time() + self.idle_timeout
        if is_last:
            self._last = chunk
            return
        try:
            has_room = take(chunk)
        except Exception as error:  # noqa: BLE001 - the caller's own: `pump` gives it back
            connection.abort()
            self.finish(error)
            return
        if not has_room:
            connection.pause()

    def finish(self, error: Exception | None = None) -> None:
        """Nothing more will come; `error` is raised after the bytes that did."""
        if self._ended:
            return
        self._ended = True
        self._error = error
        if not self.head.done() and error is not None:
            self.head.set_exception(error)
        if self._waiter is not None:
            self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class _Chunks:
    """The body of an answer, chunk by chunk."""

    def __init__(self, response: HTTP11Response) -> None:
        self._read = response.read

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if chunk := await self._read():
            return chunk
        raise StopAsyncIteration
