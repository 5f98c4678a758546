"""Opening, pausing, and the one request on trial."""

from __future__ import annotations

from router.fleet.breaker import (
    BURST_S,
    FIRST_PAUSE_S,
    INCIDENTS_TO_OPEN,
    LONGEST_PAUSE_S,
    WINDOW_S,
    Breaker,
)


def _opened(now: float = 0.0) -> Breaker:
    breaker = Breaker()
    breaker.failed(now, certain=True)
    return breaker


def test_a_new_breaker_lets_everything_pass():
    assert Breaker().allows(0.0)
    assert Breaker().closed


def test_a_burst_of_failures_is_one_incident():
    breaker = Breaker()
    for index in range(50):
        breaker.failed(10.0 + index * BURST_S / 100, certain=False)
    assert breaker.allows(11.0)


def test_separate_incidents_open_it():
    breaker = Breaker()
    for index in range(INCIDENTS_TO_OPEN):
        assert breaker.allows(index * 3.0)
        breaker.failed(index * 3.0, certain=False)
    assert not breaker.allows((INCIDENTS_TO_OPEN - 1) * 3.0)


def test_incidents_older_than_the_window_are_forgotten():
    breaker = Breaker()
    for index in range(5):
        breaker.failed(index * WINDOW_S, certain=False)
        assert breaker.closed


def test_nobody_listening_opens_it_at_once_for_a_short_while():
    breaker = _opened(5.0)
    assert not breaker.allows(5.0)
    assert breaker.allows(5.0 + FIRST_PAUSE_S)


def test_certainty_opens_it_even_within_a_burst():
    breaker = Breaker()
    breaker.failed(1.0, certain=False)
    breaker.failed(1.1, certain=True)
    assert not breaker.allows(1.1)


def test_half_open_lets_one_request_try():
    breaker = _opened()
    now = FIRST_PAUSE_S
    assert breaker.allows(now)
    assert breaker.started()
    assert not breaker.allows(now)


def test_a_success_on_trial_closes_it():
    breaker = _opened()
    breaker.started()
    breaker.succeeded()
    assert breaker.closed
    assert not breaker.started()


def test_a_failure_on_trial_doubles_the_pause_up_to_a_limit():
    breaker, now = _opened(), 0.0
    pause = FIRST_PAUSE_S
    for _ in range(10):
        now += pause
        assert breaker.allows(now)
        breaker.started()
        breaker.failed(now, certain=False)
        pause = min(2 * pause, LONGEST_PAUSE_S)
        assert not breaker.allows(now + 0.99 * pause)
    assert pause == LONGEST_PAUSE_S


def test_a_trial_that_told_nothing_leaves_room_for_another():
    breaker = _opened()
    breaker.started()
    breaker.abandoned()
    assert breaker.allows(FIRST_PAUSE_S)
    assert not breaker.closed
