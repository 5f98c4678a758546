"""W3C trace context of one request: what its caller sent, and what its worker is told.

Ids are made here because they travel with the request; spans are made afterwards, from the Outcome,
by `router.telemetry.tracing`. Format: https://www.w3.org/TR/trace-context/ version 00.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Headers = Mapping[bytes, bytes]
    Pairs = tuple[tuple[bytes, bytes], ...]

PARENT: Final = b"traceparent"
STATE: Final = b"tracestate"
MAX_STATE: Final = 512  # bytes that a participant must at least pass on
_FORM: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class Trace:
    """Ids of one request's spans; without `span_id` the context is only passed on."""

    upstream: Pairs  # headers for the worker
    trace_id: int = 0
    parent_id: int | None = None  # the caller's span
    span_id: int = 0  # the gateway's
    upstream_id: int = 0  # of the exchange with the worker
    sampled: bool = False


@dataclass(frozen=True, slots=True)
class Parent:
    """A valid traceparent."""

    trace_id: int
    span_id: int
    sampled: bool


def read_parent(value: bytes | None) -> Parent | None:
    """The caller's context; None where there is none or it is malformed (W3C: start anew)."""
    found = _FORM.fullmatch(value) if value else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == b"ff" or (version == b"00" and more):
        return None
    parent = Parent(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & 1))
    return parent if parent.trace_id and parent.span_id else None


def passed_on(headers: Headers) -> Trace | None:
    """The caller's context for the worker, unchanged: tracing is off here."""
    value = headers.get(PARENT)
    if value is None or read_parent(value) is None:
        return None
    return Trace(((PARENT, value), *_state(headers)))


@dataclass(frozen=True, slots=True)
class Tracer:
    """Begins or continues traces. `new_bits(n)` gives n random bits."""

    new_bits: Callable[[int], int]

    def __call__(self, headers: Headers) -> Trace:
        """The ids of one request's spans."""
        parent = read_parent(headers.get(PARENT))
        trace_id = parent.trace_id if parent is not None else self._id(128)
        sampled = parent.sampled if parent is not None else True
        upstream_id = self._id(64)
        value = b"00-%032x-%016x-%02x" % (trace_id, upstream_id, sampled)
        state = _state(headers) if parent is not None else ()
        return Trace(
            upstream=((PARENT, value), *state),
            trace_id=trace_id,
            parent_id=parent.span_id if parent is not None else None,
            span_id=self._id(64),
            upstream_id=upstream_id,
            sampled=sampled,
        )

    def _id(self, bits: int) -> int:
        return self.new_bits(bits) or 1  # zero is not an id


def _state(headers: Headers) -> Pairs:
    value = headers.get(STATE)
    return ((STATE, value),) if value and len(value) <= MAX_STATE else ()
