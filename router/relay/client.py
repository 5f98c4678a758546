"""The ASGI side of one exchange: the body in, status and bytes out, and noticing who has left.

Its counterpart without ASGI is `router.relay.wire`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from router.core import TooLarge
from router.relay.attended import ClientGone, Tasks, attended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, MutableMapping

    from router.core import GatewayError

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Work = Callable[[Tasks], Coroutine[Any, Any, None]]

Headers = list[tuple[bytes, bytes]]

EVENT_STREAM: Final = (b"content-type", b"text/event-stream; charset=utf-8")
_UNBUFFERED: Final = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
JSON: Final = (b"content-type", b"application/json")


class Client:
    """The ASGI side of one exchange; `headers` are lower-case, the last of a name wins."""

    __slots__ = (
        "_over",
        "_receive",
        "_send",
        "headers",
        "method",
        "received_at",
        "request_id",
        "started",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.method = str(scope.get("method", "POST"))
        self.request_id = request_id
        self.received_at = 0.0  # monotonic seconds; when the last byte of the body was read
        self.started = False
        self._over = False
        self._receive = receive
        self._send = send

    async def read_body(self, limit: int) -> bytes:
        """The whole body.

        Raises:
            TooLarge: more than `limit` bytes.
            ClientGone: closed before the end.
        """
        if int(self.headers.get(b"content-length", b"0") or b"0") > limit:
            raise TooLarge(f"the body is larger than {limit} bytes")
        message = await self._receive()
        body = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body"):
            self._check_size(len(body), limit)
            return bytes(body)
        return await self._read_rest(message, limit)

    async def _read_rest(self, message: Message, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self._check_size(size, limit)
            if not message.get("more_body"):
                return b"".join(parts)
            message = await self._receive()

    @staticmethod
    def _check_size(size: int, limit: int) -> None:
        if size > limit:
            raise TooLarge(f"the body is larger than {limit} bytes")

    async def attend(self, work: Work) -> None:
        """Do `work`, which is cut short when the client goes while it is owed something.

        Raises:
            ClientGone: in that case.
        """
        await attended(self.watch, work)

    async def watch(self) -> None:
        """Wait until the client goes; return only if the exchange was over by then.

        Raises:
            ClientGone: it went while it was still owed something.
        """
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._over:
            raise ClientGone

    async def start(self, status: int, headers: Headers) -> None:
        """Send status and headers."""
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        self.started = True

    async def write(self, chunk: bytes) -> None:
        """Send a part of the body; returns when the client has room for more."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self, chunk: bytes = b"") -> None:
        """Send the last part of the body."""
        self._over = True
        await self._send({"type": "http.response.body", "body": chunk})

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole answer at once."""
        self._over = True
        headers.append((b"content-length", str(len(body)).encode()))
        await self.start(status, headers)
        await self._send({"type": "http.response.body", "body": body})

    async def refuse(self, error: GatewayError, headers: Headers) -> None:
        """Send a refusal: a status while that is possible, else an event that ends the stream."""
        if self.started:
            await self.end(error_event(error))
        else:
            await self.respond(error.status, [JSON, *error.headers(), *headers], error.body())


def stream_headers(more: Headers) -> Headers:
    """The headers of an event stream that no proxy should hold back, and `more`."""
    return [EVENT_STREAM, *_UNBUFFERED, *more]


def error_event(error: GatewayError) -> bytes:
    """The SSE event of a failure after the first byte; no [DONE] follows it."""
    return b"data: " + error.body() + b"\n\n"
