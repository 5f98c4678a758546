"""Opens one request at one worker, as far as its first bytes; what fails here may still move on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from router.core import GatewayError, UpstreamFailed
from router.fleet import Pin
from router.relay.delivery import prepare
from router.upstream.base import UpstreamRequest
from router.upstream.exchange import HTTP11Response
from router.upstream.sse import parse_object
from router.upstream.worker_errors import worker_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from router.core import Endpoint
    from router.relay.delivery import Delivery
    from router.relay.flight import Flight
    from router.upstream.base import UpstreamResponse
    from router.upstream.transports import Upstreams
    from workers.clock import Clock
    from workers.record import WorkerRecord

REFUSAL_LIMIT: Final = 65_536  # bytes of a worker's refusal that are read


@dataclass(frozen=True, slots=True)
class Budgets:
    """Seconds that each phase at the worker may take."""

    connect: float = 5.0
    first_byte: float = 60.0
    prompt_tokens_per_second: float = 10.0  # the slowest prefill that is not yet a stall
    between_chunks: float = 120.0
    total: float = 3600.0  # of a request, from its arrival to its last byte

    def until_first_byte(self, prompt_tokens: float) -> float:
        """A long prompt must not look like a stall."""
        return self.first_byte + prompt_tokens / self.prompt_tokens_per_second


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole short answer of a worker."""

    status: int
    content_type: bytes
    body: bytes


class Exchange:
    """An answer with status 2xx whose first bytes have arrived."""

    __slots__ = ("_rest", "content_type", "delivery", "first", "pushed", "response")

    def __init__(
        self,
        response: UpstreamResponse,
        first: bytes,
        rest: AsyncIterator[bytes],
        delivery: Delivery,
    ) -> None:
        self.response = response
        self.pushed = response if isinstance(response, HTTP11Response) else None
        self.first = first
        self._rest = rest
        self.delivery = delivery
        self.content_type = content_type_of(response)

    def chunks(self) -> AsyncIterator[bytes]:
        """Every chunk as it came; see UpstreamResponse.chunks."""
        return _Chunks(self.first, self._rest)

    async def pump(self, pushed: HTTP11Response, take: Callable[[bytes], bool]) -> bytes:
        """Every chunk to `take`, but for what came together with the end; see its `pump`.

        Raises:
            UpstreamFailed, UpstreamTimeout: as in `chunks`; and whatever `take` raises.
        """
        if pushed.is_over:
            return self.first
        if not take(self.first):
            pushed.hold()
        return await pushed.pump(take)

    async def aclose(self) -> None:
        """Let go of the connection; breaking it is what ends the worker's generation."""
        await self.response.aclose()


class _Chunks:
    """The first chunk of an answer and the rest of them."""

    def __init__(self, first: bytes, rest: AsyncIterator[bytes]) -> None:
        self._first: bytes | None = first
        self._rest = rest

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        first, self._first = self._first, None
        return await anext(self._rest) if first is None else first


class Exchanges:
    """Opens exchanges with the workers, each with its private key and none of the client's."""

    def __init__(
        self,
        upstreams: Upstreams,
        key_of: Callable[[WorkerRecord], str | None],
        budgets: Budgets,
        clock: Clock,
        *,
        tenant_safe: bool = False,
    ) -> None:
        self._upstreams = upstreams
        self._key_of = key_of
        self._budgets = budgets
        self._clock = clock
        self._tenant_safe = tenant_safe
        self._headers: dict[tuple[str, str], tuple[tuple[bytes, bytes], ...]] = {}

    async def open(self, flight: Flight, record: WorkerRecord) -> Exchange:
        """Ask that worker; returns with the first bytes of its answer.

        Raises:
            UpstreamFailed, UpstreamTimeout, Loading: another worker may do better.
            GatewayError: the worker refused the request itself.
        """
        flight.asked = None
        delivery, body = prepare(flight.request, record, flight.decision, pin=self._pin_of(flight))
        request = self._request(flight, record, body)
        if flight.opened_at is None:
            flight.opened_at = self._clock.monotonic()
        flight.asked = delivery
        response = await self._upstreams.of(record.transport).open(request)
        failed: BaseException | None
        try:
            return await self._first(response, delivery, flight.request.endpoint)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed = error
        await response.aclose()  # not in the handler: see `deploy/native/rewrite.py`
        try:
            raise failed
        finally:
            failed = None  # its traceback has this frame: no cycle of the two

    def _pin_of(self, flight: Flight) -> Mapping[str, object] | None:
        """What is said of slots for the client, where tenants are kept apart."""
        if not self._tenant_safe:
            return None
        pin = flight.reservation.pin if flight.reservation is not None else None
        return (pin or Pin()).fields

    async def call(self, record: WorkerRecord, method: str, path: str, body: bytes = b"") -> Reply:
        """A short exchange that generates nothing: the whole answer of that worker.

        Raises:
            GatewayError: it failed, or refused.
        """
        request = UpstreamRequest(
            base_url=record.url,
            method=method,
            path=path,
            body=body,
            headers=self.headers(record),
            connect_timeout=self._budgets.connect,
            first_byte_timeout=self._budgets.first_byte,
            idle_timeout=self._budgets.between_chunks,
        )
        response = await self._upstreams.of(record.transport).open(request)
        failed: BaseException | None = None
        try:
            reply = await self._reply(response)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed = error
        await response.aclose()
        try:
            if failed is not None:
                raise failed
        finally:
            failed = None
        return reply

    async def _reply(self, response: UpstreamResponse) -> Reply:
        chunks = response.chunks()
        if not 200 <= response.status < 300:
            raise worker_error(response.status, parse_object(await read_refusal(chunks)))
        whole = b"".join([chunk async for chunk in chunks])
        return Reply(response.status, content_type_of(response), whole)

    async def busy_slots(self, record: WorkerRecord) -> int | None:
        """How many slots the worker processes just now; None when it does not say."""
        try:
            reply = await self.call(record, "GET", "/slots")
            return sum(bool(slot.get("is_processing")) for slot in orjson.loads(reply.body))
        except UpstreamFailed as error:
            return 0 if error.extra.get("sent") is False else None  # nobody there, nobody busy
        except (GatewayError, ValueError, AttributeError, TypeError):
            return None

    async def _first(
        self, response: UpstreamResponse, delivery: Delivery, endpoint: Endpoint
    ) -> Exchange:
        chunks = response.chunks()
        if not 200 <= response.status < 300:
            body = await read_refusal(chunks)
            raise worker_error(response.status, parse_object(body))
        if isinstance(response, HTTP11Response):
            first = await response.read()
        else:
            first = await anext(chunks, b"")
        if not first:
            raise UpstreamFailed("the worker sent an empty answer", extra={"sent": True})
        exchange = Exchange(response, first, chunks, delivery)
        if endpoint.generates and not _is_answer(exchange.content_type, first):
            kind = exchange.content_type[:60].decode("latin-1")
            failure = f"the worker sent {kind} that is no answer"
            raise UpstreamFailed(failure, extra={"sent": True})
        return exchange

    def _request(self, flight: Flight, record: WorkerRecord, body: bytes) -> UpstreamRequest:
        patience = self._budgets.until_first_byte(flight.reading.prompt_tokens)
        trace, headers = flight.request.trace, self.headers(record)
        return UpstreamRequest(
            base_url=record.url,
            method="POST",
            path=str(flight.request.endpoint),
            body=body,
            headers=headers if trace is None else headers + trace.upstream,
            connect_timeout=self._budgets.connect,
            first_byte_timeout=patience,
            # Headers may come before the prompt is digested, so the first chunk has that time too.
            idle_timeout=max(patience, self._budgets.between_chunks),
        )

    def headers(self, record: WorkerRecord) -> tuple[tuple[bytes, bytes], ...]:
        """What every request to that worker carries."""
        found = self._headers.get((record.name, record.url))
        if found is None:
            key = self._key_of(record)
            rows = [(b"content-type", b"application/json")]
            if key is not None:
                rows.append((b"authorization", b"Bearer " + key.encode()))
            found = self._headers[record.name, record.url] = tuple(rows)
        return found


def _is_answer(content_type: bytes, first: bytes) -> bool:
    """Whether it is an event stream or a JSON object, and not somebody else's page."""
    if content_type.startswith(b"text/event-stream"):
        return True
    return b"json" in content_type and first.lstrip()[:1] in (b"{", b"")


def content_type_of(response: UpstreamResponse) -> bytes:
    """The answer's content type; JSON when it does not say."""
    return dict(response.headers).get(b"content-type", b"application/json")


async def read_refusal(chunks: AsyncIterator[bytes]) -> bytes:
    """The body of a refusal, as far as it is reasonable."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > REFUSAL_LIMIT:
            break
    return b"".join(parts)
