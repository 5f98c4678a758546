"""Gateways that share workers through a real Redis never take more slots than there are."""

from __future__ import annotations

import asyncio

import pytest

from router.fleet import Fleet, leases
from router.fleet.leases import Leases
from router.in_redis import connect
from tests.fakes.gateway import HandClock, record
from tests.support.waiting import until


class _Gateway:
    """A fleet of its own, with leases in the shared Redis."""

    def __init__(self, url: str, name: str, slots: int = 4) -> None:
        self.fleet = Fleet(HandClock())
        self.fleet.update([record(slots=slots)])
        self.waiting = 0
        self.leases = Leases(connect(url), self.fleet, name, lambda model: self.waiting)

    @property
    def slots(self) -> int:
        return self.fleet.everything()[0].slots

    def take(self) -> list:
        """Every slot that this gateway may take."""
        held = []
        while (reservation := self.fleet.reserve("plain")) is not None:
            held.append(reservation)
        return held


async def _rounds(*gateways: _Gateway, count: int = 3) -> None:
    for _ in range(count):
        for gateway in gateways:
            assert await gateway.leases.sync()


@pytest.fixture
async def pair(redis_url):
    """Two gateways before one worker of four slots."""
    gateways = (_Gateway(redis_url, "one"), _Gateway(redis_url, "two"))
    yield gateways
    for gateway in gateways:
        await gateway.leases.aclose()


async def test_alone_it_has_every_slot(redis_url):
    gateway = _Gateway(redis_url, "one")
    assert gateway.slots == 4
    await _rounds(gateway)
    assert gateway.slots == 4
    await gateway.leases.aclose()


async def test_two_idle_ones_share_evenly(pair):
    await _rounds(*pair)
    assert [gateway.slots for gateway in pair] == [2, 2]


async def test_need_moves_slots_and_the_sum_never_exceeds_them(pair):
    one, two = pair
    await _rounds(one)
    held = one.take()
    assert len(held) == 4
    await _rounds(two, one)
    assert two.slots == 0  # nothing in flight is taken back
    two.waiting = 3
    for reservation in held[:3]:
        reservation.release()
    await _rounds(one, two)
    assert one.slots + two.slots <= 4
    assert two.slots == 3
    assert two.fleet.everything()[0].total_in_flight == 1  # the other's, as last heard


async def test_odd_slots_go_to_somebody(redis_url):
    gateways = [_Gateway(redis_url, name, slots=3) for name in ("one", "two")]
    await _rounds(*gateways)
    assert sorted(gateway.slots for gateway in gateways) == [1, 2]
    for gateway in gateways:
        await gateway.leases.aclose()


async def test_one_that_leaves_gives_back_and_one_that_dies_expires(redis_url, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_S", 0.2)
    leaving, dying, staying = (_Gateway(redis_url, name) for name in ("a", "b", "c"))
    await _rounds(leaving, dying, staying)
    assert leaving.slots + dying.slots + staying.slots == 4
    await leaving.leases.aclose()
    await asyncio.sleep(0.3)
    await _rounds(staying, count=1)
    assert staying.slots == 4
    await dying.leases.aclose()
    await staying.leases.aclose()


async def test_random_traffic_never_oversubscribes(pair):
    import random

    dice, held = random.Random(7), {0: [], 1: []}
    for _ in range(300):
        number = dice.randrange(2)
        gateway = pair[number]
        action = dice.random()
        if action < 0.4 and (reservation := gateway.fleet.reserve("plain")) is not None:
            held[number].append(reservation)
        elif action < 0.7 and held[number]:
            held[number].pop(dice.randrange(len(held[number]))).release()
        else:
            gateway.waiting = dice.randrange(4)
            await gateway.leases.sync()
        assert len(held[0]) + len(held[1]) <= 4


async def test_without_redis_the_last_word_stands():
    gateway = _Gateway("redis://127.0.0.1:1", "one")
    assert not await gateway.leases.sync()
    assert gateway.slots == 4
    await gateway.leases.aclose()


async def test_without_redis_newcomers_are_ours_too():
    gateway = _Gateway("redis://127.0.0.1:1", "one")
    gateway.fleet.update([])
    assert not await gateway.leases.sync()
    gateway.fleet.update([record(slots=4)])
    assert not await gateway.leases.sync()
    assert gateway.slots == 4
    await gateway.leases.aclose()


async def test_the_task_renews_and_leases_newcomers_at_once(redis_url):
    gateway = _Gateway(redis_url, "one")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(gateway.leases.run())
        await until(lambda: gateway.leases.reachable)
        gateway.fleet.update([record(slots=4), record("new", slots=2)])
        await until(lambda: [w.slots for w in gateway.fleet.everything()] == [2, 4], 0.9)
        task.cancel()
    await gateway.leases.aclose()


class _Crowd:
    """More gateways than slots, before several workers of four slots."""

    def __init__(self, url: str, gateways: int, workers: int) -> None:
        self.clock = HandClock()
        self.waiting = dict.fromkeys(range(gateways), 0)
        names = [f"worker-{n}" for n in range(workers)]
        self.fleets = [Fleet(HandClock()) for _ in range(gateways)]
        for fleet in self.fleets:
            fleet.update([record(name, slots=4) for name in names])
        self.leases = [
            Leases(connect(url), fleet, f"gateway-{n}", lambda _, n=n: self.waiting[n], self.clock)
            for n, fleet in enumerate(self.fleets)
        ]

    async def rounds(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance(1.0)
            for one in self.leases:
                assert await one.sync()

    def slots(self) -> list[list[int]]:
        return [[w.slots for w in fleet.everything()] for fleet in self.fleets]

    async def asked(self) -> int:
        """How often workers were asked about in one round."""
        client = self.leases[0]._client
        before = (await client.info("commandstats"))["cmdstat_evalsha"]["calls"]
        await self.rounds(1)
        return (await client.info("commandstats"))["cmdstat_evalsha"]["calls"] - before

    async def aclose(self) -> None:
        for one in self.leases:
            await one.aclose()


@pytest.fixture
async def crowd(redis_url):
    made = _Crowd(redis_url, gateways=12, workers=10)
    yield made
    await made.aclose()


async def test_more_gateways_than_slots_share_by_each_workers_own_order(crowd):
    await crowd.rounds(8)
    by_worker = list(zip(*crowd.slots(), strict=True))
    assert all(sum(row) == 4 and max(row) == 1 for row in by_worker)
    assert len({tuple(row) for row in by_worker}) > 5  # not the same four everywhere
    assert sum(any(row) for row in crowd.slots()) > 8


async def test_what_redis_does_grows_with_slots_not_with_gateways(crowd):
    await crowd.rounds(8)
    assert await crowd.asked() == 10 * 4
    crowd.clock.advance(leases.RARELY_S)
    assert await crowd.asked() == 10 * 12  # now and then, everybody looks again


async def test_who_has_none_gets_one_when_a_request_waits(crowd):
    await crowd.rounds(8)
    number = next(n for n, row in enumerate(crowd.slots()) if 0 in row)
    crowd.waiting[number] = 2
    await crowd.rounds(2)
    assert all(crowd.slots()[number])
    assert all(sum(row) <= 4 for row in zip(*crowd.slots(), strict=True))


async def test_a_redis_that_forgot_the_script_is_told_it_again(pair):
    await _rounds(*pair)
    await pair[0].leases._client.script_flush()
    await _rounds(*pair)
    assert [gateway.slots for gateway in pair] == [2, 2]
