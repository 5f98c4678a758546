"""Feeds bytes to the HTTP/1.1 client without a network: what came of them, for any split."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from router.core.errors import GatewayError
from router.upstream import UpstreamRequest
from router.upstream.connection import Connection
from router.upstream.exchange import HTTP11Limits, HTTP11Response

_LOOP = asyncio.new_event_loop()  # never run while bytes are fed: only a source of futures
_SOCKET = socket.socket()


@dataclass
class FakeTransport:
    """Records what the connection does to its socket."""

    written: bytearray = field(default_factory=bytearray)
    unwritten: int = 0
    aborted: bool = False
    reading: bool = True

    def get_extra_info(self, name: str) -> Any:
        return _SOCKET

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.unwritten

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True


@dataclass
class FakePool:
    """Counts what is put back."""

    limits: HTTP11Limits = field(default_factory=HTTP11Limits)
    idle: list[Connection] = field(default_factory=list)
    outlives_streams: bool = False

    def joined(self) -> None: ...

    def put(self, connection: Connection) -> None:
        self.idle.append(connection)

    def try_out(self, connection: Connection) -> None: ...

    def forget(self, connection: Connection) -> None:
        if connection in self.idle:
            self.idle.remove(connection)


@dataclass(frozen=True)
class Result:
    """What the caller of one exchange got."""

    status: int = 0
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    error: str = ""  # class of what was raised, at the head or after the body
    reused: bool = False
    pieces: tuple[bytes, ...] = field(default=(), compare=False)


@dataclass
class Driver:
    """One connection with one request on it."""

    limits: HTTP11Limits = field(default_factory=HTTP11Limits)
    method: str = "POST"
    body: bytes = b"{}"

    def __post_init__(self) -> None:
        self.transport = FakeTransport()
        self.pool = FakePool(self.limits)
        self.connection = Connection(_LOOP, self.pool)
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]
        self.exchange = self.send()

    def send(self) -> HTTP11Response:
        request = UpstreamRequest("http://x", self.method, "/", self.body, ())
        return self.connection.send(b"HEAD", request)

    def feed(self, *parts: bytes) -> None:
        for part in parts:
            if self.transport.aborted:
                return
            self.connection.data_received(part)

    def eof(self) -> None:
        if not self.transport.aborted:
            self.connection.eof_received()
        self.connection.connection_lost(None)

    def result(self) -> Result:
        """Read the exchange as its caller would."""
        return _LOOP.run_until_complete(self._read())

    async def _read(self) -> Result:
        exchange, pieces, error = self.exchange, [], ""
        try:
            await exchange.head
            async for piece in exchange.chunks():
                pieces.append(piece)  # noqa: PERF401 - those before an error count
        except GatewayError as caught:
            error = type(caught).__name__
        reused = self.connection in self.pool.idle and not self.transport.aborted
        return Result(
            exchange.status, exchange.headers, b"".join(pieces), error, reused, tuple(pieces)
        )


def drive(*parts: bytes, eof: bool = True, **fields: Any) -> Result:
    """Feed `parts` as the answer to one request, then end of file."""
    driver = Driver(**fields)
    driver.feed(*parts)
    reused = driver.connection in driver.pool.idle and not driver.transport.aborted
    if eof:
        driver.eof()
    result = driver.result()
    return Result(result.status, result.headers, result.body, result.error, reused, result.pieces)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data` cut at the given places."""
    bounds = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(bounds) if a < b]


def pumped(*parts: bytes, eof: bool = True, **fields: Any) -> Result:
    """The same with the answer pumped while it comes, its reader busy now and then."""
    driver = Driver(**fields)
    return _LOOP.run_until_complete(_pump(driver, parts, eof=eof))


async def _pump(driver: Driver, parts: tuple[bytes, ...], *, eof: bool) -> Result:
    exchange, pieces, error = driver.exchange, [], ""

    def take(piece: bytes) -> bool:
        pieces.append(piece)
        if len(pieces) % 3 == 0:
            _LOOP.call_soon(exchange.resume)
        return len(pieces) % 3 > 0

    async def read() -> None:
        await exchange.head
        pieces.append(await exchange.pump(take))

    reading = _LOOP.create_task(read())
    await asyncio.sleep(0)
    for part in parts:
        driver.feed(part)
        await asyncio.sleep(0)
    reused = driver.connection in driver.pool.idle and not driver.transport.aborted
    if eof:
        driver.eof()
    try:
        await reading
    except GatewayError as caught:
        error = type(caught).__name__
    body = b"".join(pieces)
    return Result(exchange.status, exchange.headers, body, error, reused, tuple(pieces))
