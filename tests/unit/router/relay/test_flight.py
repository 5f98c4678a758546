"""One request's times, headers, and the one Outcome."""

from __future__ import annotations

from weakref import ref

import pytest

from router.core import (
    BadRequest,
    Loading,
    NotSupported,
    NoWorker,
    RateLimited,
    Saturated,
    Status,
    UpstreamFailed,
    UpstreamTimeout,
)
from router.fleet import Fleet, read_chain
from router.relay.flight import GAPS_KEPT, Account, Flight, Reading
from tests.fakes.gateway import HandClock, classified, decision, record, request
from workers.timings import Timings


class _Test:
    """A flight with a slot on a worker, and what was recorded of it."""

    def __init__(self, **changes) -> None:
        self.clock = HandClock()
        self.fleet = Fleet(self.clock)
        self.fleet.update([record(), record("other")])
        self.outcomes = []
        features, found = classified()
        ask = request(stream=True, received_at=self.clock.now, **changes)
        reading = Reading(features, found, "print", read_chain(ask.payload), "conv", 12.0)
        self.flight = Flight(ask, reading, self.clock, self._close)
        self.flight.reservation = self.fleet.reserve("plain", expected_tokens=50.0)
        self.flight.decision = decision()

    def _close(self, flight, outcome) -> None:
        self.outcomes.append(outcome)
        if flight.reservation is not None:
            flight.reservation.release()


def test_it_ends_once_however_often_it_is_finished():
    test = _Test()
    test.flight.succeed()
    test.flight.finish()
    test.flight.fail(UpstreamFailed("late"))
    test.flight.finish()
    assert [outcome.status for outcome in test.outcomes] == [Status.OK]
    assert test.fleet.in_flight("plain") == 0


def test_who_read_its_answer_is_forgotten_with_its_end():
    class Reader:
        def __call__(self) -> Account:
            return Account(completion_tokens=3)

    test, reader = _Test(), Reader()
    test.flight.reader, held = reader, ref(reader)
    del reader
    test.flight.finish()
    assert test.outcomes[0].completion_tokens == 3
    assert held() is None  # one that holds the flight would keep both until cycles are looked for


def test_whoever_ends_early_without_a_word_is_the_client():
    test = _Test()
    test.flight.finish()
    assert test.outcomes[0].status is Status.CLIENT_GONE


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UpstreamFailed("x"), Status.UPSTREAM_ERROR),
        (UpstreamTimeout("x"), Status.TIMEOUT),
        (NoWorker("x"), Status.SHED),
        (Loading("x"), Status.SHED),
        (Saturated("x"), Status.SHED),
        (RateLimited("x"), Status.SHED),
        (BadRequest("x"), Status.CLIENT_ERROR),
        (NotSupported("x"), Status.CLIENT_ERROR),
    ],
)
def test_every_refusal_has_its_status(error, status):
    test = _Test()
    test.flight.fail(error)
    test.flight.finish()
    outcome = test.outcomes[0]
    assert outcome.status is status
    assert outcome.http_status == error.status
    assert outcome.error_code == (error.code or error.type)


def test_times_are_measured_from_the_last_byte_of_the_body():
    test = _Test()
    flight, clock = test.flight, test.clock
    clock.advance(0.5)
    flight.queue_s = 0.4
    flight.opened_at = clock.now
    clock.advance(1.0)
    for gap in (0.0, 0.2, 0.3):
        clock.advance(gap)
        flight.saw_content(2)
    timings = Timings(cache_n=4, prompt_n=6, predicted_n=3)
    flight.reader = lambda: Account(timings, 10, 3, "stop", b"sample")
    flight.succeed()
    flight.finish()
    outcome = test.outcomes[0]
    assert outcome.overhead_s == pytest.approx(0.1)
    assert outcome.ttft_s == pytest.approx(1.5)
    assert outcome.itl_s == pytest.approx((0.2, 0.3))
    assert outcome.tpot_s == pytest.approx(0.25)
    assert outcome.total_s == pytest.approx(2.0)
    assert outcome.context_tokens == 13
    assert outcome.answer_sample == b"sample"
    assert flight.reservation.produced == 6


def test_long_answers_keep_a_bounded_number_of_gaps():
    test = _Test()
    for _ in range(3 * GAPS_KEPT):
        test.flight.saw_content(1)
    test.flight.finish()
    assert len(test.outcomes[0].itl_s) == GAPS_KEPT


def test_headers_tell_what_is_known():
    test = _Test()
    headers = dict(test.flight.headers())
    assert headers[b"x-specroute-worker"] == b"plain"
    assert headers[b"x-specroute-mode"] == b"ar"
    assert headers[b"x-specroute-reason"] == b"only_candidate"
    test.flight.decision = None
    assert b"x-specroute-worker" not in dict(test.flight.headers())
    assert b"x-specroute-class" in dict(test.flight.headers())


def test_leaving_a_worker_gives_its_slot_back_and_remembers_it():
    test = _Test()
    test.flight.leave_worker()
    assert test.fleet.in_flight("plain") == 0
    assert test.flight.excluded == {"plain"}
    test.flight.reservation = test.fleet.reserve("other")
    test.flight.finish()
    assert test.outcomes[0].retried
    assert test.outcomes[0].worker == "other"
