"""Reservations against slots, leases and breakers; names and views."""

from __future__ import annotations

import asyncio

import pytest

from router.fleet import Fleet
from tests.fakes.gateway import HandClock, record
from workers.state import WorkerState


def _fleet(*records, models=None) -> Fleet:
    fleet = Fleet(HandClock(), models)
    fleet.update(records)
    return fleet


def _one(fleet: Fleet, name: str = "plain"):
    return next(w for w in fleet.everything() if w.name == name)


def test_slots_are_never_exceeded():
    fleet = _fleet(record(slots=2))
    held = [fleet.reserve("plain") for _ in range(3)]
    assert [h is not None for h in held] == [True, True, False]
    held[0].release()
    assert fleet.reserve("plain") is not None
    assert fleet.reserve("plain") is None


async def test_a_hundred_dispatches_interleave_on_one_slot():
    fleet = _fleet(record(slots=1))
    most = 0

    async def dispatch() -> None:
        nonlocal most
        while (reservation := fleet.reserve("plain")) is None:  # noqa: ASYNC110 - the point
            await asyncio.sleep(0)
        most = max(most, _one(fleet).in_flight)
        await asyncio.sleep(0)
        reservation.release()

    await asyncio.gather(*[dispatch() for _ in range(100)])
    assert most == 1
    assert _one(fleet).in_flight == 0


def test_a_second_release_gives_nothing_back():
    fleet = _fleet(record(slots=2))
    first, second = fleet.reserve("plain"), fleet.reserve("plain")
    first.release()
    first.release()
    assert _one(fleet).in_flight == 1
    second.release()
    assert _one(fleet).in_flight == 0


def test_an_unknown_worker_has_no_room():
    assert _fleet().reserve("nobody") is None


def test_remaining_tokens_shrink_with_what_was_produced():
    fleet = _fleet(record())
    reservation = fleet.reserve("plain", expected_tokens=100.0)
    reservation.produced += 30
    assert _one(fleet).remaining_tokens == (70.0,)
    reservation.produced += 500
    assert _one(fleet).remaining_tokens == (1.0,)


def test_leases_bound_what_this_gateway_may_take():
    fleet = _fleet(record(slots=4))
    fleet.set_leases({"plain": 1}, {"plain": 2})
    worker = _one(fleet)
    assert worker.slots == 1
    assert fleet.reserve("plain").occupancy == 3  # two of the others and itself
    assert fleet.reserve("plain") is None
    fleet.set_leases({"plain": 2}, {"plain": 2})
    assert fleet.reserve("plain") is not None
    fleet.set_leases({}, {})
    assert _one(fleet).slots == 0


def test_a_worker_that_comes_is_ours_only_once_it_is_leased_where_slots_are_shared():
    fleet = _fleet(record("a", slots=4))
    fleet.set_leases({"a": 4}, {})
    fleet.update([record("a", slots=4), record("b", slots=4)])
    assert [w.slots for w in fleet.everything()] == [4, 0]
    fleet.set_leases({"a": 2, "b": 3}, {})
    assert [w.slots for w in fleet.everything()] == [2, 3]


def test_a_lease_never_exceeds_the_slots():
    fleet = _fleet(record(slots=2))
    fleet.set_leases({"plain": 9}, {})
    assert _one(fleet).slots == 2


def test_a_unified_cache_is_admitted_by_summed_tokens():
    fleet = _fleet(record(slots=4, unified_kv=True, context=1000))
    big = fleet.reserve("plain", context_tokens=900)
    assert fleet.reserve("plain", context_tokens=200) is None
    assert fleet.reserve("plain", context_tokens=90) is not None
    big.release()
    assert fleet.reserve("plain", context_tokens=200) is not None


def test_a_request_larger_than_the_unified_cache_may_go_alone():
    fleet = _fleet(record(slots=4, unified_kv=True, context=1000))
    assert fleet.reserve("plain", context_tokens=5000) is not None


@pytest.mark.parametrize("state", [s for s in WorkerState if not s.serves])
def test_a_state_that_does_not_serve_is_unavailable(state):
    worker = _one(_fleet(record(state=state, reason="because")))
    assert not worker.available
    assert worker.unavailable_reason == "because"


def test_a_failed_worker_is_unavailable_until_it_may_try_again():
    clock = HandClock()
    fleet = Fleet(clock)
    fleet.update([record()])
    fleet.failed("plain", certain=True)
    assert not _one(fleet).available
    clock.advance(1.0)
    assert _one(fleet).available
    trial = fleet.reserve("plain")
    assert not _one(fleet).available
    trial.release()
    assert _one(fleet).available
    fleet.reserve("plain")
    fleet.succeeded("plain")
    assert _one(fleet).available


def test_another_process_under_the_name_starts_with_a_clean_slate():
    fleet = _fleet(record(pid=1))
    fleet.failed("plain", certain=True)
    fleet.update([record(pid=2)])
    assert _one(fleet).available


def test_names_aliases_and_configured_models_resolve():
    fleet = _fleet(record(aliases=("small",)), models={"big": ("gpt-4o",), "tiny": ()})
    assert fleet.resolve("small") == "tiny"
    assert fleet.resolve("gpt-4o") == "big"
    assert fleet.resolve("tiny") == "tiny"
    assert fleet.resolve("unheard") is None
    assert fleet.models() == {"big": ("gpt-4o",), "tiny": ("small",)}
    assert fleet.view("big").workers == ()
    assert fleet.serves("tiny", "plain")
    assert not fleet.serves("big", "plain")


def test_a_model_thinks_when_one_of_its_workers_does():
    fleet = _fleet(record(), record("other", default_thinking=True))
    assert fleet.thinks("tiny")
    fleet.update([record(), record("other")])
    assert not fleet.thinks("tiny")
    assert not fleet.thinks("unheard")


def test_a_models_own_name_wins_over_anothers_alias():
    fleet = _fleet(record("a", model="one", aliases=("two",)), record("b", model="two"))
    assert fleet.resolve("two") == "two"


def test_a_worker_that_leaves_keeps_its_running_requests():
    fleet = _fleet(record())
    reservation = fleet.reserve("plain")
    fleet.update([])
    assert not _one(fleet).available
    fleet.update([record()])
    assert _one(fleet).in_flight == 1
    fleet.update([])
    reservation.release()
    assert fleet.everything() == ()


def test_missing_workers_stay_when_told_to():
    fleet = _fleet(record())
    fleet.update([], keep_missing=True)
    assert _one(fleet).available


def test_listeners_hear_of_room():
    heard = []
    fleet = _fleet(record(slots=2))
    fleet.subscribe(lambda worker, released: heard.append((worker and worker.name, released)))
    reservation = fleet.reserve("plain")
    reservation.release()
    fleet.set_leases({"plain": 1}, {})
    fleet.set_leases({"plain": 2}, {})
    fleet.update([record(slots=2)])  # only a heartbeat: nothing to hear
    fleet.update([record(slots=3)])
    assert heard == [("plain", True), ("plain", False), (None, False)]


def test_a_worker_that_does_not_serve_may_be_waited_for_but_not_taken():
    fleet = _fleet(record(state=WorkerState.STOPPED, exclusive_group="gpu"))
    assert fleet.reserve("plain") is None
    fleet.update([record(exclusive_group="gpu")])
    assert fleet.reserve("plain") is not None


def _two_hosts() -> tuple[Fleet, HandClock]:
    clock = HandClock()
    fleet = Fleet(clock)
    fleet.update(
        [
            record("a", host="box"),
            record("b", host="box", model="another"),
            record("c", host="elsewhere"),
        ]
    )
    return fleet, clock


def test_a_request_knows_how_many_workers_were_busy_beside_its_own_meanwhile():
    fleet, clock = _two_hosts()
    fleet.reserve("c")
    mine = fleet.reserve("a")
    clock.now += 2.0
    others = [fleet.reserve("b"), fleet.reserve("b")]  # one busy worker, however many it serves
    fleet.reserve("a")  # in its own batch, not beside it
    clock.now += 2.0
    for other in others:
        other.release()
    clock.now += 4.0
    assert mine.meanwhile().beside == pytest.approx(2.0 / 8.0)


def test_a_request_knows_how_many_shared_its_worker_whoever_came_first():
    fleet, clock = _two_hosts()
    first = fleet.reserve("a")
    clock.now += 1.0
    second = fleet.reserve("a")
    assert (first.occupancy, second.occupancy) == (1, 2)
    clock.now += 3.0
    assert (first.meanwhile().batch, second.meanwhile().batch) == (
        pytest.approx(1.75),
        pytest.approx(2.0),
    )
    second.release()
    clock.now += 3.0
    assert first.meanwhile().batch == pytest.approx(10.0 / 7.0)
    assert fleet.reserve("c").meanwhile().batch == 1.0  # no time has passed


def test_a_view_counts_the_busy_workers_of_each_host_whatever_their_model():
    fleet, _ = _two_hosts()
    held = [fleet.reserve("a"), fleet.reserve("b")]
    fleet.set_leases({"a": 2, "b": 2, "c": 2}, {"b": 3})
    view = fleet.view("tiny")
    assert view.busy == {"box": 2}
    assert [view.beside(worker) for worker in view.workers] == [1, 0]
    for reservation in held:
        reservation.release()
    assert fleet.view("tiny").busy == {"box": 1}  # other gateways' requests
    assert view.busy == {"box": 2}
    fleet.set_leases({}, {})
    assert fleet.view("tiny").busy == {}


def test_a_worker_that_moves_or_leaves_takes_its_load_along():
    fleet, _ = _two_hosts()
    running = fleet.reserve("a")
    fleet.update([record("a", host="elsewhere"), record("c", host="elsewhere")])
    assert fleet.view("tiny").busy == {"elsewhere": 1}
    fleet.update([record("c", host="elsewhere")])
    running.release()
    assert fleet.view("tiny").busy == {}
