"""What is written down at the end, by how it ended."""

from __future__ import annotations

import pytest

from router.access import RateLimiter
from router.core import Outcome, Status
from router.fleet import Fleet, PrefixIndex, read_chain
from router.fleet.lingering import Lingering
from router.relay.books import Books
from router.relay.delivery import Delivery
from router.relay.flight import Account, Flight, Reading
from tests.fakes.gateway import HandClock, classified, record, request
from workers.timings import Timings


class _Test:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.fleet = Fleet(self.clock)
        self.fleet.update([record()])
        self.prefixes = PrefixIndex()
        self.held: list[tuple[object, bool]] = []
        self.outcomes: list[Outcome] = []
        lingering = Lingering(None)
        lingering.hold = lambda r, *, was_stream: self.held.append((r, was_stream))
        rates = RateLimiter(self.clock)
        books = Books(self.fleet, self.prefixes, rates, lingering, self.outcomes.append)
        features, found = classified()
        ask = request("a prompt")
        self.chain = read_chain(ask.payload)
        reading = Reading(features, found, "print", self.chain, "conv", 12.0)
        self.flight = Flight(ask, reading, self.clock, books.close)
        self.flight.reservation = self.fleet.reserve("plain")
        self.flight.reader = lambda: Account(Timings(cache_n=0, prompt_n=9, predicted_n=3), 9, 3)


@pytest.mark.interpreted
def test_a_good_answer_teaches_where_the_prompt_lives():
    test = _Test()
    test.flight.succeed()
    test.flight.finish()
    assert test.prefixes.home("conv") == "plain"
    assert test.prefixes.cached_tokens([record()], test.chain, 9.0) == {"plain": 9.0}
    assert test.fleet.in_flight("plain") == 0
    assert len(test.outcomes) == 1


@pytest.mark.interpreted
@pytest.mark.parametrize("asked", [Delivery.STREAM, Delivery.ASSEMBLED, Delivery.WHOLE])
def test_a_client_that_left_leaves_a_busy_worker(asked):
    test = _Test()
    test.flight.asked = asked
    test.flight.finish()
    assert test.held == [(test.flight.reservation, asked is not Delivery.WHOLE)]
    assert test.fleet.in_flight("plain") == 1
    assert test.outcomes[0].status is Status.CLIENT_GONE
    assert test.prefixes.home("conv") is None


@pytest.mark.interpreted
def test_before_the_worker_was_asked_there_is_nothing_to_wait_for():
    test = _Test()
    test.flight.finish()
    assert test.held == []
    assert test.fleet.in_flight("plain") == 0
