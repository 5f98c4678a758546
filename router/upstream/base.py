"""The seam to a worker: open one streaming exchange, read its bytes, close it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from classifier.quick import quick

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@quick
@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One exchange to be sent. `base_url` is http://HOST:PORT; timeouts are seconds."""

    base_url: str
    method: str
    path: str
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]  # content-length and host are the transport's
    connect_timeout: float = 5.0
    first_byte_timeout: float = 600.0  # until the response's headers
    idle_timeout: float = 300.0  # between chunks of the body


class UpstreamResponse(Protocol):
    """An answer whose headers have arrived and whose body is still coming."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]  # names in lower case

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, transfer coding removed, never joined or split further.

        Raises:
            UpstreamFailed: the connection broke or its framing is wrong.
            UpstreamTimeout: nothing came for `idle_timeout`.
        """
        ...

    async def aclose(self) -> None:
        """Give the connection back, or break it when the body was not read to its end."""
        ...


class Upstream(Protocol):
    """A way to talk to one kind of worker."""

    async def open(self, request: UpstreamRequest) -> UpstreamResponse:
        """Send `request` and wait for the response's headers.

        Raises:
            UpstreamFailed: no connection, or broken before the headers (`extra["sent"]` is False
                when the worker cannot have seen the request).
            UpstreamTimeout: a phase took longer than its budget.
        """
        ...

    async def aclose(self) -> None:
        """Close every pooled connection."""
        ...
