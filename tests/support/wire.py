"""A client's connection without sockets: bytes in, and what was answered or handed over."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from router.api.wire import WireProtocol, request_lines
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from router.relay.wire import WireClient

PATH = "/v1/chat/completions"


@dataclass
class State:
    """What uvicorn's server keeps."""

    total_requests: int = 0
    connections: set[Any] = field(default_factory=set)
    tasks: set[Any] = field(default_factory=set)
    default_headers: list[tuple[bytes, bytes]] = field(default_factory=list)


class Transport:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.sent = b""
        self.closed = False
        self.reading = True
        self.protocol: Any = None

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.sent += data

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol


class Other(asyncio.Protocol):
    """Stands for uvicorn's protocol: keeps what it is given."""

    def __init__(self) -> None:
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data


class Wire:
    """One connection; `serve` answers with the body's own bytes unless the test brings another."""

    def __init__(self, serve=None) -> None:
        self.state, self.transport, self.other = State(), Transport(), Other()
        self.seen: list[tuple[dict[bytes, bytes], bytes]] = []
        self._serve = serve or self._echo
        lines = request_lines({PATH: self._remember})
        loop = asyncio.get_running_loop()
        self.protocol = WireProtocol(lambda: lines, self.state, lambda: self.other, loop)
        self.protocol.connection_made(self.transport)

    async def feed(self, parts: Iterable[bytes]) -> None:
        """Give the parts as the socket would, whoever reads it by then."""
        for part in parts:
            (self.transport.protocol or self.protocol).data_received(part)
            await asyncio.sleep(0)
        await self.settled()

    async def settled(self) -> None:
        """Until nothing is being served."""
        await until(lambda: not self.state.tasks)

    async def _remember(self, client: WireClient) -> None:
        self.seen.append((client.headers, await client.read_body(1 << 30)))
        await self._serve(client)

    async def _echo(self, client: WireClient) -> None:
        await client.respond(200, [], await client.read_body(1 << 30))


def post(body: bytes = b"{}", *headers: bytes, line: bytes = b"") -> bytes:
    """A request with that body."""
    rows = [line or b"POST %b HTTP/1.1" % PATH.encode(), b"host: localhost", *headers]
    rows.append(b"content-length: %d" % len(body))
    return b"\r\n".join(rows) + b"\r\n\r\n" + body
