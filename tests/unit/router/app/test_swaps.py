"""What is planned becomes an order, once, and says what a second GPU would bring."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from router.app.swaps import Swaps
from router.core import Candidate, CostEstimate
from router.fleet import Fleet
from tests.fakes.gateway import HandClock, decision, record
from tests.fakes.outcomes import outcome
from workers.registry import MemoryRegistry
from workers.state import WorkerState

GROUP = {"exclusive_group": "gpu", "load_s": 4.0, "host": "here"}
ASLEEP = {**GROUP, "state": WorkerState.STOPPED}


class Orders(MemoryRegistry):
    """Remembers what was ordered."""

    def __init__(self, clock):
        super().__init__(clock)
        self.sent = []

    async def send(self, command):
        self.sent.append((command.verb.value, command.worker))
        return 1


class Host:
    """A gateway's swaps over two workers of one group, `a` resident."""

    def __init__(self):
        self.clock, self.queue = HandClock(), []
        self.fleet = Fleet(self.clock)
        self.orders = Orders(self.clock)
        self.becomes(a=GROUP, b=ASLEEP)
        self.swaps = Swaps(self.fleet, lambda: self.queue, self.orders, self.clock)

    def becomes(self, **workers):
        self.fleet.update([record(name, **fields) for name, fields in workers.items()])

    def served(self, a, b, count=1, **changes):
        """Requests that `a` served, which were predicted to take `a` and `b` seconds."""
        for _ in range(count):
            rows = [
                Candidate("a", "ar", CostEstimate(decode_s=a, queue_s=9.0)),
                Candidate("b", "ar", CostEstimate(decode_s=b, swap_s=4.0)),
            ]
            chosen = replace(decision(worker="a"), candidates=tuple(rows))
            self.swaps.record(outcome(worker="a", decision=chosen, **changes))


def wish(worker):
    return decision(worker=worker)


async def test_the_mix_is_followed_by_one_order():
    here = Host()
    here.served(2.0, 1.0, count=6)
    await here.swaps.look()
    assert here.orders.sent == []
    here.served(2.0, 1.0)
    with capture_logs() as logs:
        await here.swaps.look()
        await here.swaps.look()
    assert here.orders.sent == [("load", "b")]
    (line,) = [entry for entry in logs if entry["event"] == "swap"]
    assert (line["load"], line["unload"]) == ("b", "a")
    assert "a second GPU would have saved 11.0 s" in line["advice"]


async def test_an_order_that_was_lost_is_given_again_and_a_move_under_way_is_not_disturbed():
    here = Host()
    here.queue = [(wish("b"), 1.0)]
    await here.swaps.look()
    here.clock.advance(6.0)
    here.becomes(a={**GROUP, "state": WorkerState.DRAINING}, b=ASLEEP)
    await here.swaps.look()
    assert here.orders.sent == [("load", "b")]
    here.becomes(a=GROUP, b=ASLEEP)
    await here.swaps.look()
    assert here.orders.sent == [("load", "b")] * 2


async def test_a_swap_that_is_over_does_not_delay_the_next():
    here = Host()
    here.queue = [(wish("b"), 1.0)]
    await here.swaps.look()
    here.clock.advance(1.0)
    await here.swaps.look()  # the records do not show it yet
    here.becomes(a=ASLEEP, b=GROUP)
    here.queue = []
    await here.swaps.look()
    here.queue = [(wish("a"), 1.0)]
    await here.swaps.look()
    assert here.orders.sent == [("load", "b"), ("load", "a")]


async def test_an_operators_swap_is_not_crossed_while_nobody_is_resident():
    here = Host()
    await here.swaps.look()
    here.queue = [(wish("a"), 1.0)]
    here.becomes(a=ASLEEP, b=ASLEEP)  # `a` has left; `b`, which was ordered, shows in a moment
    await here.swaps.look()
    assert here.orders.sent == []
    here.clock.advance(1.5)
    await here.swaps.look()
    assert here.orders.sent == [("load", "a")]


async def test_what_an_operator_has_loaded_stays():
    here = Host()
    here.served(1.0, 2.0, count=20)
    await here.swaps.look()
    here.becomes(a=ASLEEP, b=GROUP)
    await here.swaps.look()
    assert here.orders.sent == []  # though `a` does better with this mix
    here.queue = [(wish("a"), 1.0)]
    await here.swaps.look()
    assert here.orders.sent == []  # whoever wanted `b` has requests for it, which show in a moment
    here.clock.advance(3.0)
    await here.swaps.look()
    assert here.orders.sent == [("load", "a")]


async def test_what_an_operator_has_drained_makes_room_and_is_not_loaded():
    here = Host()
    here.becomes(a={**GROUP, "state": WorkerState.DRAINING, "held": True}, b=ASLEEP)
    here.served(1.0, 2.0, count=20)
    here.queue = [(wish("b"), 1.0)]
    await here.swaps.look()
    assert here.orders.sent == [("load", "b")]
    here.clock.advance(6.0)
    here.becomes(a={**ASLEEP, "held": True}, b=GROUP)
    here.queue = [(wish("a"), 99.0)]
    await here.swaps.look()
    assert here.orders.sent == [("load", "b")]


async def test_those_that_wait_for_the_resident_are_no_reason():
    here = Host()
    here.queue = [(wish("a"), 1.0), (wish("elsewhere"), 99.0)]
    await here.swaps.look()
    assert here.orders.sent == []


async def test_what_the_cache_holds_is_part_of_the_price():
    here = Host()
    here.served(2.0, 1.0, count=7, conversation="c", context_tokens=9000, timings=_cached())
    await here.swaps.look()
    assert here.orders.sent == []  # 9000 tokens at 1000 a second would be read anew
    here.clock.advance(601.0)
    here.served(2.0, 1.0, count=1)
    await here.swaps.look()
    assert here.orders.sent == [("load", "b")]


def _cached():
    return replace(outcome().timings, cache_n=8000, prompt_n=1000, prompt_ms=1000.0)


@pytest.mark.parametrize("state", [WorkerState.FAILED, WorkerState.QUARANTINED])
async def test_a_member_that_cannot_run_is_not_loaded(state):
    here = Host()
    here.becomes(a=GROUP, b={**GROUP, "state": state})
    here.served(9.0, 1.0, count=20)
    here.queue = [(wish("b"), 99.0)]
    await here.swaps.look()
    assert here.orders.sent == []
