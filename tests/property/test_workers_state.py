"""A worker's states under any order of events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workers.backoff import Backoff
from workers.clock import SystemClock
from workers.spec import WorkerSpec
from workers.state import TRANSITIONS, IllegalTransition, WorkerEvent, WorkerState, advance
from workers.status import Status

EVENTS = st.lists(st.sampled_from(list(WorkerEvent)), max_size=40)


@given(EVENTS)
def test_a_status_is_always_where_the_table_says_and_published_so(events):
    published = []
    spec = WorkerSpec("w", "m", "ar")
    status = Status(spec, SystemClock(), published.append, host="h", features=())
    expected = WorkerState.STOPPED
    for event in events:
        legal = (expected, event) in TRANSITIONS
        try:
            status.advance(event)
        except IllegalTransition:
            assert not legal
        else:
            assert legal
            expected = advance(expected, event)
        assert status.state is expected
        assert not published or published[-1].state is expected


@given(EVENTS)
def test_whatever_happened_a_worker_can_be_stopped_and_started(events):
    state = WorkerState.STOPPED
    for event in events:
        state = TRANSITIONS.get((state, event), state)
    assert advance(advance(state, WorkerEvent.STOP), WorkerEvent.SPAWN) is WorkerState.STARTING


@given(st.lists(st.floats(0, 50), max_size=60), st.randoms(use_true_random=False))
def test_crashes_in_a_row_always_end_in_quarantine_and_rare_ones_never(gaps, rng):
    backoff = Backoff()
    crashes, now, in_window = (), 0.0, []
    for gap in gaps:
        now += gap
        crashes, delay = backoff.after(crashes, now, rng)
        in_window = [at for at in (*in_window, now) if now - at < backoff.window]
        assert (delay is None) == (len(in_window) >= backoff.limit)
        assert delay is None or backoff.first <= delay <= backoff.cap * (1 + backoff.jitter)
