"""Remote models for what the local workers cannot serve: when, which, and opened how.

Only a request that would be refused comes here, so nothing of it is on the hot path. Its answer
says so in `x-specroute-fallback`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson
import structlog

from router.core import (
    BadRequest,
    Endpoint,
    GatewayError,
    Loading,
    MissingFeature,
    NotSupported,
    NoWorker,
    Reason,
    RoutingDecision,
    Saturated,
    UpstreamFailed,
    UpstreamTimeout,
)
from router.relay.delivery import Delivery
from router.relay.exchange import Exchange
from router.upstream.base import UpstreamRequest
from router.upstream.litellm_provider import CALLS, EXTRA_HEADER

if TYPE_CHECKING:
    from router.core import InferenceRequest
    from router.relay.exchange import Budgets
    from router.relay.flight import Flight
    from router.upstream.transports import Upstreams

log = structlog.get_logger(__name__)

TRANSPORT: Final = "router.upstream.litellm_provider:LiteLLMUpstream"
NAME: Final = "fallback"  # stands for the worker in headers, metrics and the decision log
MODE: Final = "remote"
_CONSTRAINTS: Final = ("grammar", "json_schema")  # llama.cpp's own: an answer without is wrong
_OCCASIONS: Final[tuple[tuple[str, tuple[type[GatewayError], ...]], ...]] = (
    ("down", (NoWorker, Loading, UpstreamFailed, UpstreamTimeout)),
    ("full", (Saturated,)),
    ("unsupported", (NotSupported, MissingFeature)),
)


@dataclass(frozen=True, slots=True)
class Remote:
    """One remote model. `url` "": the provider's own; `extra_fields`: llama.cpp's go along."""

    model: str  # litellm's name, PROVIDER/MODEL
    url: str = ""
    api_key: str = ""
    extra_fields: bool = False


@dataclass(frozen=True, slots=True)
class Fallback:
    """The remotes of the local models; `default` serves those that have none of their own."""

    upstreams: Upstreams
    budgets: Budgets
    default: Remote | None = None
    remotes: Mapping[str, Remote] = field(default_factory=dict)
    when: frozenset[str] = frozenset({"down", "full", "unsupported"})

    def remote_for(self, request: InferenceRequest, error: GatewayError) -> Remote | None:
        """Who would serve `request` instead of refusing it with `error`; None: nobody."""
        remote = self.remotes.get(request.model, self.default)
        if remote is None or occasion(error) not in self.when:
            return None
        wishes, payload = request.wishes, request.payload
        pinned = wishes.worker is not None or wishes.mode is not None
        bound = any(payload.get(name) is not None for name in _CONSTRAINTS)
        if pinned or request.endpoint.value not in CALLS or (bound and not remote.extra_fields):
            return None
        return remote

    async def open(self, flight: Flight, remote: Remote, because: GatewayError) -> Exchange:
        """Ask the remote; returns with the first bytes of its answer.

        Raises:
            GatewayError: it failed too, or refused.
        """
        code = because.code or because.type
        log.info("fallback", model=flight.request.model, remote=remote.model, because=code)
        flight.leave_worker()
        flight.decision = _decision(flight, remote)
        flight.remote = f"{remote.model}; because={code}"
        delivery, body = _prepared(flight.request, remote)
        upstream = self.upstreams.of(TRANSPORT)
        response = await upstream.open(self._request(flight, remote, body))
        try:
            chunks = response.chunks()
            first = await anext(chunks, b"")
            if not first:
                raise UpstreamFailed("the fallback sent an empty answer", extra={"sent": True})
            return Exchange(response, first, chunks, delivery)
        except BaseException:
            await response.aclose()
            raise

    def _request(self, flight: Flight, remote: Remote, body: bytes) -> UpstreamRequest:
        headers = [(b"authorization", b"Bearer " + remote.api_key.encode())]
        if remote.extra_fields:
            headers.append(EXTRA_HEADER)
        return UpstreamRequest(
            base_url=remote.url,
            method="POST",
            path=flight.request.endpoint.value,
            body=body,
            headers=tuple(headers),
            connect_timeout=self.budgets.connect,
            first_byte_timeout=self.budgets.until_first_byte(flight.reading.prompt_tokens),
            idle_timeout=self.budgets.between_chunks,
        )


def occasion(error: GatewayError) -> str:
    """`down`, `full` or `unsupported`; "" for a refusal that is the client's own doing."""
    if isinstance(error, BadRequest) and error.code == "context_length_exceeded":
        return "unsupported"
    return next((name for name, kinds in _OCCASIONS if isinstance(error, kinds)), "")


def told(error: GatewayError, failure: GatewayError) -> GatewayError:
    """What a client is told: the remote's refusal of the request, else our own trouble first."""
    if failure is not error and (failure.status >= 500 or failure.status == 429):
        error.message = f"{error.message}; {failure.message}"
        return error
    return failure


def _decision(flight: Flight, remote: Remote) -> RoutingDecision:
    """What the headers and the log say: nobody here was chosen."""
    candidates = flight.decision.candidates if flight.decision is not None else ()
    return RoutingDecision(
        worker=NAME, mode=MODE, reason=Reason.FALLBACK, candidates=candidates, policy=remote.model
    )


def _prepared(request: InferenceRequest, remote: Remote) -> tuple[Delivery, bytes]:
    """How the answer comes back, and the body with the remote's model and usage asked for."""
    changes: dict[str, Any] = {"model": remote.model}
    if not request.stream or request.endpoint is Endpoint.EMBEDDINGS:
        return Delivery.WHOLE, orjson.dumps({**request.payload, **changes})
    options = request.payload.get("stream_options")
    kept = options if isinstance(options, Mapping) else {}
    changes["stream_options"] = {**kept, "include_usage": True}
    asked = request.wants_usage_chunk
    delivery = Delivery.STREAM if asked else Delivery.STREAM_WITHOUT_USAGE
    return delivery, orjson.dumps({**request.payload, **changes})
