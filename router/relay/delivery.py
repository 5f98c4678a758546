"""What to send to a worker, and how its answer will become the client's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import orjson

from router.core import Endpoint
from router.upstream.assemble import can_assemble, upstream_body

if TYPE_CHECKING:
    from router.core import InferenceRequest, RoutingDecision
    from workers.record import WorkerRecord


class Delivery(Enum):
    """How a worker's answer becomes the client's."""

    STREAM = auto()  # relayed as it comes
    STREAM_WITHOUT_USAGE = auto()  # the same, less the usage event that only we asked for
    CHOICES = auto()  # relayed, with what llama-server leaves out where there are several choices
    ASSEMBLED = auto()  # streamed by the worker, so that it can be cancelled; sent as one body
    WHOLE = auto()  # one body at both ends


def prepare(
    request: InferenceRequest,
    record: WorkerRecord,
    decision: RoutingDecision | None,
    *,
    pin: Mapping[str, object] | None = None,
) -> tuple[Delivery, bytes]:
    """How the answer will come back, and the body to send: the client's own where that will do.

    `pin` replaces what a client says of slots and their cache, where those may be another's.
    """
    changes: dict[str, Any] = dict(decision.overrides) if decision is not None else {}
    if pin is not None and record.engine == "llama-server":
        changes |= pin
        if request.payload.get("cache_prompt") is False:
            changes["cache_prompt"] = False
    if record.engine != "llama-server" and request.payload.get("model") != record.model:
        changes["model"] = record.model  # llama-server takes any name, others do not
    if not request.stream:
        return _prepare_plain(request, changes)
    if record.engine == "llama-server" and _is_openai(request) and _choices(request) > 1:
        return Delivery.CHOICES, _body(request, changes)
    if record.engine == "llama-server" or request.wants_usage_chunk or not _is_openai(request):
        return Delivery.STREAM, _body(request, changes)
    options = request.payload.get("stream_options")
    kept = options if isinstance(options, Mapping) else {}
    changes["stream_options"] = {**kept, "include_usage": True}
    return Delivery.STREAM_WITHOUT_USAGE, _body(request, changes)


def _prepare_plain(request: InferenceRequest, changes: Mapping[str, Any]) -> tuple[Delivery, bytes]:
    body = _body(request, changes)
    payload = {**request.payload, **changes} if changes else request.payload
    if _is_openai(request) and can_assemble(payload):
        return Delivery.ASSEMBLED, upstream_body(payload, body)
    return Delivery.WHOLE, body


def _choices(request: InferenceRequest) -> int:
    asked = request.payload.get("n")
    return asked if isinstance(asked, int) else 1


def _is_openai(request: InferenceRequest) -> bool:
    return request.endpoint in (Endpoint.CHAT, Endpoint.COMPLETIONS)


def _body(request: InferenceRequest, changes: Mapping[str, Any]) -> bytes:
    return orjson.dumps({**request.payload, **changes}) if changes else request.body
