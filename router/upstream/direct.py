"""The upstream seam on httpx: the reference `http11.py` is tested against, and its fallback."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from router.core.errors import UpstreamFailed, UpstreamTimeout
from router.upstream.origin import Origin, request_head, sendable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from router.upstream.base import UpstreamRequest

_IDLE_SECONDS = 4.0  # cpp-httplib and uvicorn close an idle connection after 5 s
_LIMITS = httpx.Limits(
    max_connections=None, max_keepalive_connections=64, keepalive_expiry=_IDLE_SECONDS
)
_UNSENT = {"sent": False}
_SENT = {"sent": True}


class DirectUpstream:
    """Workers reached through httpx over HTTP/1.1, proxies left aside; https for attached ones."""

    def __init__(self) -> None:
        # The machine's own trust store (or SSL_CERT_FILE): private services have private CAs.
        self._transport = httpx.AsyncHTTPTransport(
            verify=ssl.create_default_context(), limits=_LIMITS, trust_env=False
        )

    async def open(self, request: UpstreamRequest) -> DirectResponse:
        """Send `request` and wait for the response's headers; see `Upstream.open`."""
        head = _check(request)
        async with _phase(request.first_byte_timeout):
            response = await self._transport.handle_async_request(head)
        opened = DirectResponse(response, request.idle_timeout)
        if _is_ambiguous(opened.headers):
            await opened.aclose()
            raise UpstreamFailed("the worker's answer states its length twice", extra=_SENT)
        return opened

    async def aclose(self) -> None:
        """Close every pooled connection."""
        await self._transport.aclose()


class DirectResponse:
    """An httpx response behind the seam's names."""

    def __init__(self, response: httpx.Response, idle_timeout: float) -> None:
        self.status = response.status_code
        self.headers = tuple((name.lower(), value) for name, value in response.headers.raw)
        self._response = response
        self._idle_timeout = idle_timeout

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as httpx reads it; see `UpstreamResponse.chunks`."""
        parts = self._response.aiter_raw()
        while True:
            async with _phase(self._idle_timeout):
                part = await anext(parts, None)
            if part is None:
                return
            yield part

    async def aclose(self) -> None:
        """Give the connection back; one that carried a stream is closed, whatever it advertised."""
        if (b"content-type", b"text/event-stream") in (
            (name, value[:17].lower()) for name, value in self.headers
        ):
            await self._response.extensions["network_stream"].aclose()
        await self._response.aclose()


def _check(request: UpstreamRequest) -> httpx.Request:
    """The request for httpx, with nothing of httpx's own defaults in it."""
    origin = Origin.parse(request.base_url, ("http", "https"))
    request_head(origin, request)  # refuses what the other transport refuses
    body = request.body if request.body or request.method not in ("GET", "HEAD") else None
    return httpx.Request(
        request.method,
        request.base_url.rstrip("/") + request.path,
        headers=list(sendable(request.headers)),
        content=body,
        extensions={"timeout": {"connect": request.connect_timeout}},
    )


def _is_ambiguous(headers: tuple[tuple[bytes, bytes], ...]) -> bool:
    framing = (b"content-length", b"transfer-encoding")
    return sum(name in framing for name, _ in headers) > 1


@asynccontextmanager
async def _phase(seconds: float) -> AsyncIterator[None]:
    """httpx's errors, and a phase longer than `seconds`, as the seam's."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise UpstreamTimeout(
            "the worker did not accept a connection in time", extra=_UNSENT
        ) from error
    except (TimeoutError, httpx.TimeoutException) as error:
        raise UpstreamTimeout("the worker sent nothing in time", extra=_SENT) from error
    except httpx.ConnectError as error:
        raise UpstreamFailed("the worker does not accept connections", extra=_UNSENT) from error
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise UpstreamFailed(
            "the worker closed the connection early or its answer is not valid HTTP", extra=_SENT
        ) from error
