from __future__ import annotations

import pytest

from workers.state import TRANSITIONS, IllegalTransition, WorkerEvent, WorkerState, advance

S, E = WorkerState, WorkerEvent


def test_a_life():
    state = S.STOPPED
    for event, expected in [
        (E.SPAWN, S.STARTING),
        (E.ANSWERS, S.LOADING),
        (E.LOADED, S.READY),
        (E.PROBE_FAILED, S.DEGRADED),
        (E.DRAIN, S.DRAINING),
        (E.EXITED, S.BACKOFF),
        (E.SPAWN, S.STARTING),
        (E.CRASH_LOOP, S.QUARANTINED),
        (E.STOP, S.STOPPED),
    ]:
        state = advance(state, event)
        assert state is expected


def test_moves_outside_the_table_are_errors():
    for state in S:
        for event in E:
            if (state, event) not in TRANSITIONS:
                with pytest.raises(IllegalTransition, match=f"{state}.*{event}"):
                    advance(state, event)


def test_every_state_can_be_stopped_and_left():
    for state in S:
        assert advance(state, E.STOP) is S.STOPPED
        assert any(start is state and end is not state for (start, _), end in TRANSITIONS.items())


def test_two_states_serve():
    assert [state for state in S if state.serves] == [S.READY, S.DEGRADED]
