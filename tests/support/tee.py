"""A wire-tap between gateway and worker: bytes through unchanged, a copy of each answer's body."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httptools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Body:
    """The body of one HTTP/1.1 answer, fed as it comes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.status = 0
        self.complete = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        self._parser.feed_data(data)

    @property
    def content(self) -> bytes:
        return b"".join(self.parts)

    # What the parser calls.
    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        self.parts.append(data)

    def on_message_complete(self) -> None:
        self.complete = True


@dataclass
class Tee:
    """Answers by the traceparent of their requests, until they are taken."""

    url: str = ""
    answers: dict[bytes, Body] = field(default_factory=dict)
    open: int = 0

    def take(self, trace: str) -> Body | None:
        return self.answers.pop(trace.encode(), None)


@asynccontextmanager
async def tee(worker_url: str) -> AsyncIterator[Tee]:
    """One before the worker at that address."""
    found = Tee()
    target = urlsplit(worker_url)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.open += 1
        try:
            await _exchange(found, reader, writer, target.hostname or "", target.port or 80)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            found.open -= 1
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()


async def _exchange(
    found: Tee, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
) -> None:
    """One request and its answer; the worker is told to close, so that the next comes anew."""
    head = await reader.readuntil(b"\r\n\r\n")
    rows = (row.split(b":", 1) for row in head.split(b"\r\n")[1:] if row)
    headers = {name.lower(): value.strip() for name, value in rows}
    body = await reader.readexactly(int(headers.get(b"content-length", b"0")))
    to, there = await asyncio.open_connection(host, port)
    try:
        there.write(head[:-2] + b"Connection: close\r\n\r\n" + body)
        answer = Body()
        if b"traceparent" in headers:
            found.answers[headers[b"traceparent"]] = answer
        gone = asyncio.ensure_future(reader.read())  # ends when the gateway breaks it off
        try:
            await _pump(to, writer, answer, gone)
        finally:
            gone.cancel()
    finally:
        there.transport.abort()


async def _pump(
    source: asyncio.StreamReader,
    sink: asyncio.StreamWriter,
    answer: Body,
    gone: asyncio.Future[bytes],
) -> None:
    while not gone.done():
        data = asyncio.ensure_future(source.read(65_536))
        await asyncio.wait((data, gone), return_when=asyncio.FIRST_COMPLETED)
        if not data.done():
            data.cancel()
            return
        chunk = data.result()
        if not chunk:
            sink.close()
            with contextlib.suppress(OSError):
                await sink.wait_closed()
            return
        answer.feed(chunk)
        sink.write(chunk)
        await sink.drain()
