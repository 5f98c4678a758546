"""Opens one request at one worker, as far as its first bytes; what fails here may still move on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

import orjson

from router.core import Endpoint, UpstreamFailed
from router.relay.refusals import translate
from router.upstream import assemble
from router.upstream.base import UpstreamRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from router.core import InferenceRequest, RoutingDecision
    from router.relay.flight import Flight
    from router.upstream.base import Upstream, UpstreamResponse
    from workers.clock import Clock
    from workers.record import WorkerRecord

REFUSAL_LIMIT: Final = 65_536  # bytes of a worker's refusal that are read


class Delivery(Enum):
    """How a worker's answer becomes the client's."""

    STREAM = auto()  # relayed as it comes
    STREAM_WITHOUT_USAGE = auto()  # the same, less the usage event that only we asked for
    ASSEMBLED = auto()  # streamed by the worker, so that it can be cancelled; sent as one body
    WHOLE = auto()  # one body at both ends


@dataclass(frozen=True, slots=True)
class Budgets:
    """Seconds that each phase at the worker may take."""

    connect: float = 5.0
    first_byte: float = 60.0
    prompt_tokens_per_second: float = 10.0  # the slowest prefill that is not yet a stall
    between_chunks: float = 120.0

    def until_first_byte(self, prompt_tokens: float) -> float:
        """A long prompt must not look like a stall."""
        return self.first_byte + prompt_tokens / self.prompt_tokens_per_second


class Exchange:
    """An answer with status 2xx whose first bytes have arrived."""

    __slots__ = ("_rest", "content_type", "delivery", "first", "response")

    def __init__(
        self,
        response: UpstreamResponse,
        first: bytes,
        rest: AsyncIterator[bytes],
        delivery: Delivery,
    ) -> None:
        self.response = response
        self.first = first
        self._rest = rest
        self.delivery = delivery
        headers = dict(response.headers)
        self.content_type = headers.get(b"content-type", b"application/json")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Every chunk as it came; see UpstreamResponse.chunks."""
        yield self.first
        async for chunk in self._rest:
            yield chunk

    async def aclose(self) -> None:
        """Let go of the connection; breaking it is what ends the worker's generation."""
        await self.response.aclose()


class Exchanges:
    """Opens exchanges with the workers, each with its private key and none of the client's."""

    def __init__(
        self,
        upstream: Upstream,
        key_of: Callable[[WorkerRecord], str | None],
        budgets: Budgets,
        clock: Clock,
    ) -> None:
        self._upstream = upstream
        self._key_of = key_of
        self._budgets = budgets
        self._clock = clock
        self._headers: dict[tuple[str, str], tuple[tuple[bytes, bytes], ...]] = {}

    async def open(self, flight: Flight, record: WorkerRecord) -> Exchange:
        """Ask that worker; returns with the first bytes of its answer.

        Raises:
            UpstreamFailed, UpstreamTimeout, Loading: another worker may do better.
            GatewayError: the worker refused the request itself.
        """
        delivery, body = prepare(flight.request, record, flight.decision)
        request = self._request(flight, record, body)
        if flight.opened_at is None:
            flight.opened_at = self._clock.monotonic()
        response = await self._upstream.open(request)
        try:
            return await self._first(response, delivery, record)
        except BaseException:
            await response.aclose()
            raise

    async def _first(
        self, response: UpstreamResponse, delivery: Delivery, record: WorkerRecord
    ) -> Exchange:
        chunks = response.chunks()
        if not 200 <= response.status < 300:
            raise translate(response.status, await read_refusal(chunks), record.name)
        first = await anext(chunks, b"")
        if not first:
            raise UpstreamFailed("the worker sent an empty answer", extra={"sent": True})
        return Exchange(response, first, chunks, delivery)

    def _request(self, flight: Flight, record: WorkerRecord, body: bytes) -> UpstreamRequest:
        patience = self._budgets.until_first_byte(flight.reading.prompt_tokens)
        return UpstreamRequest(
            base_url=record.url,
            method="POST",
            path=flight.request.endpoint.value,
            body=body,
            headers=self.headers(record),
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


def prepare(
    request: InferenceRequest, record: WorkerRecord, decision: RoutingDecision | None
) -> tuple[Delivery, bytes]:
    """How the answer will come back, and the body to send: the client's own where that will do."""
    changes: dict[str, Any] = dict(decision.overrides) if decision is not None else {}
    if record.engine != "llama-server" and request.payload.get("model") != record.model:
        changes["model"] = record.model  # llama-server takes any name, others do not
    if not request.stream:
        return _prepare_plain(request, changes)
    if record.engine == "llama-server" or request.wants_usage_chunk or not _is_openai(request):
        return Delivery.STREAM, _body(request, changes)
    options = request.payload.get("stream_options")
    kept = options if isinstance(options, Mapping) else {}
    changes["stream_options"] = {**kept, "include_usage": True}
    return Delivery.STREAM_WITHOUT_USAGE, _body(request, changes)


def _prepare_plain(request: InferenceRequest, changes: Mapping[str, Any]) -> tuple[Delivery, bytes]:
    payload = {**request.payload, **changes}
    if _is_openai(request) and assemble.can_assemble(payload):
        return Delivery.ASSEMBLED, assemble.upstream_body(payload)
    return Delivery.WHOLE, _body(request, changes)


def _is_openai(request: InferenceRequest) -> bool:
    return request.endpoint in (Endpoint.CHAT, Endpoint.COMPLETIONS)


def _body(request: InferenceRequest, changes: Mapping[str, Any]) -> bytes:
    return orjson.dumps({**request.payload, **changes}) if changes else request.body
