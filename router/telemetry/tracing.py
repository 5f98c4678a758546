"""OpenTelemetry spans with the GenAI semantic conventions, made of finished requests.

A sink: spans are built from an Outcome after the client has its answer, so tracing costs the
request nothing but its ids. Export runs in the SDK's own thread, and the SDK (extra `otel`) is
imported only where an OTLP endpoint is configured.
"""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from router.core.outcome import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.core import Outcome, RoutingDecision
    from router.core.tracing import Trace

OPERATIONS: Final[Mapping[str, str]] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "chat",
    "/v1/messages": "chat",
    "/v1/completions": "text_completion",
    "/infill": "text_completion",
    "/v1/embeddings": "embeddings",
    "/v1/rerank": "rerank",
}
"""Values of gen_ai.operation.name; those after the fourth are the conventions' own too."""

_NS: Final = 1_000_000_000
_FAILED: Final = (Status.UPSTREAM_ERROR, Status.TIMEOUT, Status.SHED)


class TracingUnavailable(RuntimeError):
    """An OTLP endpoint is configured, but the SDK is not installed."""


class Span(NamedTuple):
    """One span as plain values. Times are Unix nanoseconds; `parent` is a span id or None."""

    name: str
    kind: str  # SERVER, CLIENT or INTERNAL
    span_id: int
    parent: int | None
    start: int
    end: int
    attributes: Mapping[str, Any]
    failed: str = ""  # why, for the status


class Tracing:
    """Turns outcomes into spans and exports them in batches."""

    def __init__(self, endpoint: str, *, version: str = "", attempt_s: float = 5.0) -> None:
        """`endpoint` is the OTLP/HTTP base URL (or the full .../v1/traces).

        Raises:
            TracingUnavailable: the extra `otel` is not installed.
        """
        self._sdk = _SDK.load()
        url = endpoint if endpoint.endswith("/v1/traces") else f"{endpoint.rstrip('/')}/v1/traces"
        exporter = self._sdk.exporter(endpoint=url, timeout=attempt_s)
        self._out = self._sdk.processor(exporter)
        self._resource = self._sdk.resource(
            {"service.name": "specroute", "service.version": version}
        )

    def record(self, outcome: Outcome) -> None:
        """Queue the spans of one finished request; the SDK drops them when its queue is full."""
        trace = outcome.trace
        if trace is None or not trace.span_id or not trace.sampled:
            return
        for span in spans_of(outcome, trace):
            self._out.on_end(self._sdk.readable(span, trace, self._resource))

    async def aclose(self) -> None:
        """Export what waits and end the SDK's thread; it may take an export's time."""
        await asyncio.to_thread(self._out.shutdown)


def spans_of(outcome: Outcome, trace: Trace) -> list[Span]:
    """The gateway's span, and below it route, queue, upstream and stream as far as they took place.

    Seconds of the Outcome are laid end to end: decide, wait, ask, stream.
    """
    end = int(outcome.wall_time * _NS)
    start = end - int(outcome.total_s * _NS)
    decided = start + int(outcome.overhead_s * _NS)
    asked = decided + int(outcome.queue_s * _NS)
    own = trace.span_id
    spans = [_gateway(outcome, trace, start, end)]
    if outcome.decision is not None:
        spans.append(_route(outcome.decision, trace, start, min(decided, end)))
    if outcome.queue_s > 0:
        at = (min(decided, end), min(asked, end))
        spans.append(Span("queue", "INTERNAL", _child(trace, 2), own, *at, {}))
    if outcome.worker:
        spans.append(_upstream(outcome, trace, min(asked, end), end))
        if outcome.ttft_s is not None:
            first = start + int(outcome.ttft_s * _NS)
            spans.append(_stream(outcome, trace, min(first, end), end))
    return spans


def _gateway(outcome: Outcome, trace: Trace, start: int, end: int) -> Span:
    what = outcome.classification
    attributes = {
        "http.request.method": "POST",
        "http.route": outcome.endpoint,
        "http.response.status_code": outcome.http_status or None,
        "error.type": outcome.error_code or None,
        "specroute.request_id": outcome.request_id,
        "specroute.outcome": outcome.status.value,
        "specroute.class": str(what.workload_class) if what is not None else None,
        "specroute.kind": what.kind if what is not None else None,
        "specroute.retried": outcome.retried,
    }
    name = f"POST {outcome.endpoint}"
    failed = _why(outcome)
    return Span(name, "SERVER", trace.span_id, trace.parent_id, start, end, attributes, failed)


def _route(decision: RoutingDecision, trace: Trace, start: int, end: int) -> Span:
    estimate = decision.estimate()
    attributes = {
        "specroute.worker": decision.worker,
        "specroute.mode": decision.mode,
        "specroute.reason": decision.reason.value,
        "specroute.policy": decision.policy,
        "specroute.propensity": decision.propensity,
        "specroute.candidates": len(decision.candidates),
        "specroute.predicted_s": estimate.own_s if estimate is not None else None,
    }
    return Span("route", "INTERNAL", _child(trace, 1), trace.span_id, start, end, attributes)


def _upstream(outcome: Outcome, trace: Trace, start: int, end: int) -> Span:
    operation = OPERATIONS.get(outcome.endpoint, "chat")
    t = outcome.timings
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "llama_cpp",
        "gen_ai.request.model": outcome.model,
        "gen_ai.response.model": outcome.model,
        "gen_ai.request.stream": outcome.stream,
        "gen_ai.response.finish_reasons": (outcome.finish_reason,)
        if outcome.finish_reason
        else None,
        "gen_ai.usage.input_tokens": outcome.prompt_tokens,
        "gen_ai.usage.output_tokens": outcome.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": t.cache_n,
        "error.type": outcome.error_code or None,
        "specroute.worker": outcome.worker,
        "specroute.mode": outcome.mode,
        "specroute.occupancy": outcome.occupancy,
        "specroute.draft_tokens": t.draft_n,
        "specroute.draft_accepted_tokens": t.draft_n_accepted,
        "specroute.decode_tokens_per_second": t.decode_tokens_per_second,
    }
    name = f"{operation} {outcome.model}"
    own, parent = trace.upstream_id, trace.span_id
    return Span(name, "CLIENT", own, parent, start, end, attributes, _why(outcome))


def _stream(outcome: Outcome, trace: Trace, start: int, end: int) -> Span:
    attributes = {
        "gen_ai.response.time_to_first_chunk": outcome.ttft_s,
        "specroute.time_per_output_token_s": outcome.tpot_s,
    }
    own, parent = _child(trace, 3), trace.upstream_id
    return Span("stream", "INTERNAL", own, parent, start, end, attributes)


def _child(trace: Trace, number: int) -> int:
    """Ids of spans that nobody else refers to: distinct from the gateway's and each other."""
    return (trace.span_id ^ (number << 32)) or number


def _why(outcome: Outcome) -> str:
    """A client that leaves or asks badly is not our failure (HTTP conventions)."""
    return outcome.error_code or outcome.status.value if outcome.status in _FAILED else ""


@dataclass(frozen=True, slots=True)
class _SDK:
    """The parts of the OpenTelemetry SDK in use, imported on first need."""

    api: Any
    sdk: Any
    exporter: Any
    processor: Any
    resource: Any

    @classmethod
    def load(cls) -> _SDK:
        try:
            http = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
            export = importlib.import_module("opentelemetry.sdk.trace.export")
            resources = importlib.import_module("opentelemetry.sdk.resources")
            sdk = importlib.import_module("opentelemetry.sdk.trace")
            api = importlib.import_module("opentelemetry.trace")
        except ImportError as error:
            raise TracingUnavailable(
                "telemetry.otlp_endpoint is set, but OpenTelemetry is not installed: "
                "pip install 'specroute[otel]'"
            ) from error
        return cls(
            api,
            sdk,
            http.OTLPSpanExporter,
            export.BatchSpanProcessor,
            resources.Resource.create,
        )

    def readable(self, span: Span, trace: Trace, resource: Any) -> Any:
        """The span as the SDK's processors take it."""
        status = self.api.Status(self.api.StatusCode.ERROR, span.failed) if span.failed else None
        given = {name: value for name, value in span.attributes.items() if value is not None}
        remote = span.parent == trace.parent_id
        parent = None if span.parent is None else self._context(trace, span.parent, remote=remote)
        return self.sdk.ReadableSpan(
            name=span.name,
            context=self._context(trace, span.span_id, remote=False),
            parent=parent,
            resource=resource,
            attributes=given,
            kind=self.api.SpanKind[span.kind],
            status=status or self.api.Status(self.api.StatusCode.UNSET),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope(),
        )

    def _context(self, trace: Trace, span_id: int, *, remote: bool) -> Any:
        flags = self.api.TraceFlags(self.api.TraceFlags.SAMPLED)
        return self.api.SpanContext(trace.trace_id, span_id, remote, flags)

    def _scope(self) -> Any:
        module = importlib.import_module("opentelemetry.sdk.util.instrumentation")
        return module.InstrumentationScope("specroute")
