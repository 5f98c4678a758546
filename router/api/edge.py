"""The hot endpoints as raw ASGI: who asks, how often, what for; then the Dispatcher's.

Nothing of the web framework is on this path: it costs more than everything else here together.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from router.api.schema import parse
from router.core import Endpoint, GatewayError, MethodNotAllowed, Outcome, Status
from router.core.tracing import passed_on
from router.relay import Client, ClientGone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from router.access import Authenticator, RateLimiter
    from router.core import InferenceRequest
    from router.core.tracing import Trace
    from router.dispatch import Dispatcher
    from router.fleet import Fleet
    from router.relay.client import Receive, Scope, Send
    from workers.clock import Clock

    ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

ENDPOINTS: Final = tuple(Endpoint)
MAX_ID_CHARS: Final = 128
_STAMP: Final = secrets.token_hex(10)  # of this process; a number makes it a request's
_NUMBERS: Final = count(1)


@dataclass(frozen=True, slots=True)
class Edge:
    """What stands between a socket and the Dispatcher."""

    authenticator: Authenticator
    rates: RateLimiter
    fleet: Fleet
    dispatcher: Dispatcher
    clock: Clock
    max_body_bytes: int
    max_grammar_bytes: int
    record: Callable[[Outcome], None]  # of what is refused before it is dispatched
    trace: Callable[[dict[bytes, bytes]], Trace | None] = passed_on

    def endpoint(self, endpoint: Endpoint) -> ASGIApp:
        """The ASGI callable of one generating endpoint."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await self.serve(endpoint, Client(scope, receive, send, ""))

        return app

    async def serve(self, endpoint: Endpoint, client: Client) -> None:
        """Read, check and dispatch one request."""
        client.request_id = request_id(client.headers)
        try:
            if client.method != "POST":
                raise MethodNotAllowed(f"{endpoint.value} takes POST only", allow="POST")
            request = await self.read(endpoint, client)
        except GatewayError as error:
            refusal = error
        except ClientGone:
            return
        else:
            await self.dispatcher.dispatch(request, client)
            return
        self.record(self._refused(endpoint, client, refusal))
        await client.refuse(refusal, id_header(client))

    async def read(self, endpoint: Endpoint, client: Client) -> InferenceRequest:
        """One checked request.

        Raises:
            GatewayError: it is not let in, or not understood.
            ClientGone: it left before its body was complete.
        """
        principal = self.authenticator.authenticate(client.headers)
        self.rates.acquire(principal.key_id)
        body = await client.read_body(self.max_body_bytes)
        client.received_at = self.clock.monotonic()
        request = parse(
            endpoint,
            body,
            client,
            principal,
            self.fleet,
            max_grammar_bytes=self.max_grammar_bytes,
        )
        trace = self.trace(client.headers)
        return request if trace is None else replace(request, trace=trace)

    def _refused(self, endpoint: Endpoint, client: Client, error: GatewayError) -> Outcome:
        """The Outcome of a request that was not let in; its own claims are not repeated."""
        return Outcome(
            request_id=client.request_id,
            endpoint=endpoint.value,
            model="none",
            status=Status.SHED if error.status == 429 else Status.CLIENT_ERROR,
            wall_time=self.clock.wall(),
            http_status=error.status,
            error_code=error.code or error.type,
        )


def request_id(headers: dict[bytes, bytes]) -> str:
    """The caller's x-request-id where it has a usable one, else a new id."""
    given = headers.get(b"x-request-id", b"")
    if given and len(given) <= MAX_ID_CHARS and given.isascii():
        text = given.decode("ascii").strip()
        if text.isprintable():
            return text
    return f"{_STAMP}{next(_NUMBERS):012x}"


def id_header(client: Client) -> list[tuple[bytes, bytes]]:
    """The header that every answer has."""
    return [(b"x-request-id", client.request_id.encode("ascii"))]
