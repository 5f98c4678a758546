"""Reading, continuing and passing on W3C trace context."""

from __future__ import annotations

import itertools

import pytest

from router.core.tracing import Tracer, passed_on, read_parent

VALID = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        b"00-00000000000000000000000000000000-b7ad6b7169203331-01",
        b"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        b"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        b"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        VALID + b"-more",
        VALID + b"\r\nx-evil: 1",
    ],
)
def test_malformed_context_is_no_context(value) -> None:
    assert read_parent(value) is None
    assert value is None or passed_on({b"traceparent": value}) is None


def test_a_later_version_may_say_more() -> None:
    parent = read_parent(b"01" + VALID[2:] + b"-more")
    assert parent is not None
    assert parent.span_id == 0xB7AD6B7169203331


def test_a_trace_goes_on_below_its_caller() -> None:
    ids = itertools.count(7)
    tracer = Tracer(lambda bits: next(ids))
    trace = tracer({b"traceparent": VALID, b"tracestate": b"a=b"})
    assert trace.trace_id == 0x0AF7651916CD43DD8448EB211C80319C
    assert trace.parent_id == 0xB7AD6B7169203331
    assert trace.sampled
    assert len({trace.parent_id, trace.span_id, trace.upstream_id}) == 3
    assert dict(trace.upstream)[b"tracestate"] == b"a=b"


def test_without_a_caller_a_trace_begins_and_foreign_state_is_dropped() -> None:
    trace = Tracer(lambda bits: 0)({b"tracestate": b"a=b"})
    assert (trace.trace_id, trace.parent_id, trace.span_id) == (1, None, 1)
    assert [name for name, _ in trace.upstream] == [b"traceparent"]


def test_passed_on_unchanged() -> None:
    trace = passed_on({b"traceparent": VALID, b"tracestate": b"x" * 600})
    assert trace is not None
    assert trace.upstream == ((b"traceparent", VALID),)
    assert not trace.span_id
