"""A server on a real socket whose every byte the test decides: for the upstream contract suite."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

PATIENCE = 10.0  # seconds a test waits for what must happen


@dataclass
class Request:
    """One request as it came."""

    head: bytes
    body: bytes

    @property
    def headers(self) -> dict[bytes, bytes]:
        rows = (row.split(b": ", 1) for row in self.head.split(b"\r\n")[1:] if row)
        return {name.lower(): value for name, value in rows}

    @property
    def line(self) -> bytes:
        return self.head.split(b"\r\n", 1)[0]


@dataclass
class Peer:
    """The server's side of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def request(self) -> Request:
        """Read one whole request; IncompleteReadError when the client closes first."""
        head = await self.head()
        length = int(head.headers.get(b"content-length", b"0"))
        return Request(head.head, await self.reader.readexactly(length))

    async def head(self) -> Request:
        """Read a request up to the blank line."""
        return Request((await self.reader.readuntil(b"\r\n\r\n"))[:-2], b"")

    async def send(self, *parts: bytes) -> None:
        """Write each part by itself, with a breath of the event loop between them."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def until_gone(self) -> None:
        """Wait for the client to close or reset; whatever it still sends is dropped."""
        with contextlib.suppress(OSError):
            while await self.reader.read(65_536):
                pass
        self.gone.set()

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Close with a reset instead of a goodbye."""
        self.writer.transport.abort()


@dataclass
class RawServer:
    """A listening server and the connections made to it."""

    script: Callable[[Peer], Awaitable[None]]
    url: str = ""
    peers: list[Peer] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, len(self.peers))
        self.peers.append(peer)
        self.tasks.append(asyncio.get_running_loop().create_task(self._serve(peer)))

    async def _serve(self, peer: Peer) -> None:
        try:
            await self.script(peer)
        except (asyncio.IncompleteReadError, OSError):
            peer.gone.set()
        finally:
            peer.writer.close()

    async def stop(self, listener: asyncio.Server) -> None:
        listener.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for peer in self.peers:
            peer.writer.transport.abort()
        await asyncio.sleep(0.001)  # the loop closes aborted sockets in its next turns


@asynccontextmanager
async def raw_server(script: Callable[[Peer], Awaitable[None]]) -> AsyncIterator[RawServer]:
    """Serve `script` to every connection on a free port of 127.0.0.1."""
    server = RawServer(script)
    listener = await asyncio.start_server(server.accept, "127.0.0.1", 0, limit=1 << 20)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        await server.stop(listener)


def answer(body: bytes = b"{}", *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """A complete response with a content-length."""
    rows = [b"HTTP/1.1 " + status, b"Content-Type: application/json", *headers]
    rows.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(rows) + b"\r\n\r\n" + body


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Keep-Alive: timeout=5, max=100\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"
