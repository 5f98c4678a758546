"""The queue: bounded, fair, honest about how long it takes, and leaking nothing."""

from __future__ import annotations

import asyncio

import pytest

from router.access import Admission
from router.core import NoWorker, Principal, Saturated
from router.fleet import Fleet
from tests.fakes.gateway import HandClock, decision, record
from tests.support.admitting import admitted


class _Gate:
    """A fleet of one worker behind an Admission, and requests that hold their slot until told."""

    def __init__(self, *, slots: int = 1, max_queue: int = 100) -> None:
        self.clock = HandClock()
        self.fleet = Fleet(self.clock)
        self.fleet.update([record(slots=slots)])
        self.admission = Admission(self.clock, lambda r: r.release(), max_queue=max_queue)
        self.fleet.subscribe(self.admission.pump)
        self.order: list[str] = []
        self.most = 0

    def attempt(self):
        taken = self.fleet.reserve("plain")
        self.most = max(self.most, self.fleet.in_flight("plain"))
        return taken

    async def ask(self, name: str, *, key: str = "k", priority: int = 0, hold: bool = False):
        principal = Principal(key_id=key, priority=priority)
        reservation = await admitted(self.admission, self.attempt, principal, model="tiny")
        self.order.append(name)
        if not hold:
            await asyncio.sleep(0)
            reservation.release()
        return reservation


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_free_slot_is_taken_at_once():
    gate = _Gate()
    await gate.ask("a", hold=True)
    assert gate.admission.depth() == 0


async def test_a_hundred_requests_share_one_slot_one_at_a_time():
    gate = _Gate()
    await asyncio.gather(*[gate.ask(str(n)) for n in range(100)])
    assert gate.most == 1
    assert len(gate.order) == 100
    assert gate.fleet.in_flight("plain") == 0


async def test_first_come_first_served_within_a_key():
    gate = _Gate()
    await asyncio.gather(*[gate.ask(str(n)) for n in range(10)])
    assert gate.order == [str(n) for n in range(10)]


async def test_a_busy_key_does_not_starve_a_quiet_one():
    gate = _Gate()
    held = await gate.ask("first", hold=True)
    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(gate.ask(f"busy{number}", key="busy"))
        await _settle()
        group.create_task(gate.ask("quiet0", key="quiet"))
        group.create_task(gate.ask("quiet1", key="quiet"))
        await _settle()
        held.release()
    assert gate.order.index("quiet0") <= 2
    assert gate.order.index("quiet1") <= 4


async def test_priority_goes_first():
    gate = _Gate()
    held = await gate.ask("first", hold=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(gate.ask("low"))
        await _settle()
        group.create_task(gate.ask("high", key="other", priority=1))
        await _settle()
        held.release()
    assert gate.order == ["first", "high", "low"]


async def test_a_full_queue_refuses_and_says_when_to_come_back():
    gate = _Gate(max_queue=2)
    held = await gate.ask("first", hold=True)
    async with asyncio.TaskGroup() as group:
        for number in range(2):
            group.create_task(gate.ask(str(number)))
        await _settle()
        with pytest.raises(Saturated) as refused:
            await gate.ask("too many")
        assert refused.value.code == "queue_full"
        assert refused.value.retry_after > 0
        held.release()


async def test_the_wait_is_measured_from_what_leaves():
    gate = _Gate(slots=1)
    reservation = await gate.ask("first", hold=True)
    for _ in range(20):  # one leaves every half second
        gate.clock.advance(0.5)
        reservation.release()
        reservation = gate.fleet.reserve("plain")
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(gate.ask(str(n))) for n in range(10)]
        await _settle()
        assert gate.admission.depth("tiny") == 10
        assert gate.admission.depth("other") == 0
        assert gate.admission.retry_after() == pytest.approx(5.0, rel=0.3)
        gate.clock.advance(30.0)  # and then nothing for a long time
        assert gate.admission.retry_after() > 10.0
        reservation.release()
        await asyncio.gather(*waiting)


async def test_one_who_leaves_is_forgotten():
    gate = _Gate()
    held = await gate.ask("first", hold=True)
    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(gate.ask("leaving"))
        staying = group.create_task(gate.ask("staying"))
        await _settle()
        leaving.cancel()
        await _settle()
        assert gate.admission.depth() == 1
        held.release()
        await staying
    assert gate.order == ["first", "staying"]


async def test_a_slot_granted_to_one_who_just_left_goes_to_the_next():
    gate = _Gate()
    held = await gate.ask("first", hold=True)
    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(gate.ask("leaving"))
        await _settle()
        held.release()  # granted now,
        leaving.cancel()  # and gone in the same tick
        await _settle()
        assert gate.fleet.in_flight("plain") == 0
        await gate.ask("next")
    assert gate.order == ["first", "next"]


async def test_a_refusal_while_waiting_reaches_the_one_who_waits():
    gate = _Gate()
    held = await gate.ask("first", hold=True)
    broken = []

    def attempt():
        if broken:
            raise NoWorker("all gone")
        return None

    waiting = asyncio.gather(
        admitted(gate.admission, attempt, Principal(), model="tiny"), return_exceptions=True
    )
    await _settle()
    broken.append(True)
    held.release()
    (refused,) = await waiting
    assert isinstance(refused, NoWorker)
    assert gate.admission.depth() == 0


async def test_room_on_one_worker_wakes_only_those_who_could_use_it():
    gate = _Gate()
    asked: list[str] = []

    def attempt_for(name: str):
        def attempt():
            asked.append(name)

        return attempt

    waits = [
        asyncio.gather(
            admitted(gate.admission, attempt_for(n), Principal(), model=model, worker=worker),
            return_exceptions=True,
        )
        for n, model, worker in (
            ("any", "tiny", None),
            ("pinned here", "tiny", "plain"),
            ("pinned there", "tiny", "mtp"),
            ("other model", "big", None),
        )
    ]
    await _settle()
    asked.clear()
    gate.admission.pump(record("plain"), True)
    assert asked == ["any", "pinned here"]
    asked.clear()
    gate.admission.pump(None, False)
    assert len(asked) == 4
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    assert gate.admission.depth() == 0


async def test_who_waits_for_what_and_how_long():
    gate = _Gate()
    held = await gate.ask("first", hold=True)
    wished = decision(worker="other")
    waits = asyncio.create_task(
        admitted(gate.admission, gate.attempt, Principal(), model="tiny", decided=lambda: wished)
    )
    await asyncio.sleep(0)
    gate.clock.advance(7.0)
    assert list(gate.admission.waiting()) == [(wished, 7.0)]
    held.release()
    (await waits).release()
    assert list(gate.admission.waiting()) == []
