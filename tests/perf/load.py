"""The client of the comparison: keep-alive connections that ask, time and count, on uvloop.

Requests and answers are handled as bytes, because this process shares the machine with what it
measures. The stub's content carries the instant at which it was sent (see stub.c).
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from typing import Any

_SENT = re.compile(rb"@(\d{6,20})")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass
class Sample:
    """What one load has seen. Seconds."""

    latencies: list[float] = field(default_factory=list)  # whole answers
    first: list[float] = field(default_factory=list)  # until the first content of a stream
    delays: list[float] = field(default_factory=list)  # of content after it was sent
    chunks: int = 0
    failures: int = 0
    seconds: float = 0.0  # what the whole load took


@dataclass(frozen=True)
class Load:
    """`each` requests on each of `connections`, streams of `tokens` events `gap_ms` apart."""

    connections: int
    each: int
    tokens: int = 1
    gap_ms: int = 0
    stream: bool = False
    prompt: str = "Write a function that parses a date. Return only code."

    def body(self) -> bytes:
        """The request's JSON."""
        flag = "true" if self.stream else "false"
        return (
            b'{"model":"tiny","messages":[{"role":"user","content":"%b"}],'
            b'"max_tokens":%d,"seed":%d,"stream":%b}'
        ) % (self.prompt.encode(), self.tokens, self.gap_ms, flag.encode())


class _Connection(asyncio.Protocol):
    def __init__(self, request: bytes, load: Load, sample: Sample) -> None:
        self._request = request
        self._load = load
        self._sample = sample
        self._left = load.each
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._data = b""
        self._first = True
        self._begin = time.monotonic()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._load.stream:
            self._note(data, time.monotonic())
        self._data = (self._data + data) if not self._load.stream else (self._data + data)[-4096:]
        if self._complete():
            self._finish()

    def _note(self, data: bytes, now: float) -> None:
        for match in _SENT.finditer(data):
            self._sample.chunks += 1
            self._sample.delays.append(now - int(match[1]) / 1e9)
            if self._first:
                self._first = False
                self._sample.first.append(now - self._begin)

    def _complete(self) -> bool:
        data = self._data
        if data.endswith(b"0\r\n\r\n"):
            return True
        head, end, body = data.partition(b"\r\n\r\n")
        length = _LENGTH.search(head) if end else None
        return length is not None and len(body) >= int(length[1])

    def _finish(self) -> None:
        self._sample.latencies.append(time.monotonic() - self._begin)
        if self._load.stream:
            good = b"[DONE]" in self._data and not self._first
        else:
            good = self._data.startswith(b"HTTP/1.1 200") and b'"choices"' in self._data
        self._sample.failures += not good
        self._left -= 1
        if self._left:
            self._ask()
        elif not self.done.done():
            self.done.set_result(None)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._sample.failures += self._left
            self.done.set_result(None)


async def run(load: Load, port: int, headers: str, limit_s: float = 60.0) -> Sample:
    """Put the load on 127.0.0.1:`port`; `headers` are extra lines, each ended by CRLF."""
    body, sample = load.body(), Sample()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    )
    loop = asyncio.get_running_loop()
    request = head.encode() + body
    made = [
        (
            await loop.create_connection(
                lambda: _Connection(request, load, sample), "127.0.0.1", port
            )
        )[1]
        for _ in range(load.connections)
    ]
    _, late = await asyncio.wait([one.done for one in made], timeout=limit_s)
    sample.failures += len(late)
    return sample
