from __future__ import annotations

import asyncio
import math
import random

import pytest

from router.core import Status
from router.telemetry import Knowledge
from router.telemetry.knowledge import text_of
from router.telemetry.levels import Arm
from router.telemetry.sharing import StatsSync
from router.telemetry.store import MemoryStatsStore, StoreUnavailable
from router.telemetry.store.base import TotalName
from tests.fakes.gateway import HandClock
from tests.fakes.outcomes import outcome


class Shaky(MemoryStatsStore):
    """A store that can be switched off, also between storing and answering."""

    def __init__(self):
        super().__init__()
        self.up = True
        self.deaf = False

    async def publish(self, batch):
        if not self.up:
            raise StoreUnavailable("away")
        await super().publish(batch)
        if self.deaf:
            raise StoreUnavailable("no answer came")

    async def load(self):
        if not self.up:
            raise StoreUnavailable("away")
        return await super().load()

    async def roll_up(self, now_epoch):
        if not self.up:
            raise StoreUnavailable("away")
        await super().roll_up(now_epoch)


class Gateway:
    """One gateway's knowledge on a shared store."""

    def __init__(self, store, name="g", clock=None):
        self.clock = clock if clock is not None else HandClock()
        self.knowledge = Knowledge()
        self.sync = StatsSync(self.knowledge, store, self.clock, gateway=name)

    def answer(self, count=1, **changes):
        for _ in range(count):
            done = outcome(at=self.clock.wall(), **changes)
            self.knowledge.observe(done)
            self.sync.record(done)

    @property
    def weight(self):
        return sum(moments.n for _, _, _, moments in self.knowledge.speeds.measured())

    def expected(self, mode):
        """Tokens per second that the next such answer is expected to have."""
        of = outcome(mode=mode)
        arm = Arm(of.model, of.worker_key, of.mode)
        return math.exp(
            self.knowledge.speeds.predict(arm, text_of(of.classification, 0, False), 0).ln_v
        )

    def speed(self):
        rows = [moments for _, _, _, moments in self.knowledge.speeds.measured()]
        return math.exp(sum(m.wy for m in rows) / sum(m.w for m in rows))


async def test_two_gateways_learn_from_each_other():
    store = MemoryStatsStore()
    first, second = Gateway(store, "a"), Gateway(store, "b")
    first.answer(10, tokens_per_second=40.0)
    second.answer(10, tokens_per_second=40.0)
    assert first.weight == 10
    for gateway in (first, second, first):
        assert await gateway.sync.sync()
    assert (first.weight, second.weight) == (20, 20)
    assert first.speed() == pytest.approx(second.speed())


async def test_own_answers_count_at_once_and_only_once():
    gateway = Gateway(MemoryStatsStore())
    gateway.answer(3)
    await gateway.sync.sync()
    gateway.answer(2)
    assert gateway.weight == 5
    for _ in range(3):
        await gateway.sync.sync()
    assert gateway.weight == 5


async def test_while_the_store_is_away_nothing_is_lost():
    store = Shaky()
    gateway, other = Gateway(store, "a"), Gateway(store, "b")
    store.up = False
    for _ in range(3):
        gateway.answer(4)
        assert not await gateway.sync.sync()
    assert gateway.weight == 12
    assert not gateway.sync.available
    store.up = True
    assert await gateway.sync.sync()
    assert await gateway.sync.sync()
    await other.sync.sync()
    assert (gateway.weight, other.weight) == (12, 12)


async def test_a_batch_whose_answer_was_lost_is_not_counted_twice():
    store = Shaky()
    gateway = Gateway(store)
    gateway.answer(4)
    store.deaf = True
    assert not await gateway.sync.sync()
    store.deaf = False
    assert await gateway.sync.sync()
    assert gateway.weight == 4
    assert (await store.totals())[TotalName("tiny", "prose", "mtp-n3")]["requests"] == 4


@pytest.mark.interpreted
async def test_rows_that_wait_are_bounded(monkeypatch):
    monkeypatch.setattr("router.telemetry.sharing.MAX_ROWS", 3)
    gateway = Gateway(MemoryStatsStore())
    gateway.answer(2)
    assert gateway.sync.rows_shed > 0


async def test_totals_are_the_workers_own_counts():
    store = MemoryStatsStore()
    gateway = Gateway(store)
    gateway.answer(3, tokens=101)
    gateway.answer(1, status=Status.CLIENT_GONE)
    gateway.sync.record(outcome(status=Status.SHED, classification=None, mode="", model="tiny"))
    await gateway.sync.sync()
    totals = await store.totals()
    sums = totals[TotalName("tiny", "prose", "mtp-n3")]
    done = outcome()
    assert sums["requests"] == 4
    assert sums["requests_ok"] == 3
    assert sums["requests_client_gone"] == 1
    assert sums["predicted_n"] == 4 * done.timings.predicted_n
    assert sums["draft_n"] == 4 * done.timings.draft_n
    assert sums["draft_n_accepted"] == 4 * done.timings.draft_n_accepted
    assert sums["ttft_requests"] == 3
    assert totals[TotalName("tiny", "none", "none")]["requests_shed"] == 1


async def test_a_change_is_cut_for_every_gateway():
    store = MemoryStatsStore()
    first, second = Gateway(store, "a"), Gateway(store, "b")
    first.answer(60, tokens_per_second=40.0)
    await first.sync.sync()
    first.answer(8, tokens_per_second=13.0)
    for gateway in (first, second, first):
        await gateway.sync.sync()
    assert first.speed() < 17
    assert second.speed() < 17


async def test_after_a_change_all_gateways_expect_the_same():
    store = MemoryStatsStore()
    first, second = Gateway(store, "a"), Gateway(store, "b")
    for mode in ("ar", "mtp-n3"):
        first.answer(60, mode=mode, tokens_per_second=40.0)
    await first.sync.sync()
    await second.sync.sync()
    first.answer(8, tokens_per_second=13.0)
    late = Gateway(store, "c")
    for gateway in (first, second, late) * 20:
        await gateway.sync.sync()
    assert first.expected("mtp-n3") < 20.0
    for gateway in (second, late):
        for mode in ("ar", "mtp-n3"):
            assert gateway.expected(mode) == pytest.approx(first.expected(mode), rel=1e-4)


@pytest.mark.parametrize("between_s", [0.0, 900.0])
async def test_a_second_change_does_not_bring_back_what_the_first_one_ended(between_s):
    """A worker is slow for a while: what it did before must not weigh again when that ends."""
    store, clock = MemoryStatsStore(), HandClock()
    first, second = Gateway(store, "a", clock), Gateway(store, "b", clock)
    weights = []
    for speed, count in ((40.0, 60), (13.0, 9), (40.0, 9)):
        for _ in range(count):
            first.answer(1, tokens_per_second=speed)
        weights.append(min(moments.w for _, _, _, moments in first.knowledge.speeds.measured()))
        for gateway in (first, second) * 2:
            await gateway.sync.sync()
        clock.advance(between_s)
    assert len(first.knowledge.alarms) == 2
    for gateway in (first, second):
        rows = [moments for _, _, _, moments in gateway.knowledge.speeds.measured()]
        assert [m.w for m in rows] == pytest.approx([weights[-1]], rel=0.05)
        assert gateway.expected("mtp-n3") == pytest.approx(40.0, rel=0.1)
    assert second.expected("mtp-n3") == pytest.approx(first.expected("mtp-n3"), rel=1e-4)


async def test_a_change_that_two_gateways_see_at_once_is_one_change():
    store = MemoryStatsStore()
    both = Gateway(store, "a"), Gateway(store, "b")
    both[0].answer(60, tokens_per_second=40.0)
    for gateway in both:
        await gateway.sync.sync()
    for _ in range(12):
        for gateway in both:
            gateway.answer(2, tokens_per_second=13.0)
            await gateway.sync.sync()
    for gateway in both * 20:
        await gateway.sync.sync()
    assert both[0].expected("mtp-n3") == pytest.approx(both[1].expected("mtp-n3"), rel=1e-4)
    assert both[0].expected("mtp-n3") == pytest.approx(13.0, rel=0.15)
    assert 1 <= sum(len(gateway.knowledge.alarms) for gateway in both) <= 2


async def test_a_change_seen_while_sums_came_in_is_cut_at_once():
    class Slow(MemoryStatsStore):
        async def load(self):
            shared = await super().load()
            gateway.answer(8, tokens_per_second=13.0)
            return shared

    gateway = Gateway(MemoryStatsStore())
    gateway.answer(60, tokens_per_second=40.0)
    await gateway.sync.sync()
    slow = Slow()
    slow.__dict__ |= gateway.sync._store.__dict__
    gateway.sync._store = slow
    await gateway.sync.sync()
    assert gateway.knowledge.alarms
    assert gateway.speed() < 17


async def test_the_task_rolls_up_and_survives_an_outage():
    store = Shaky()
    gateway = Gateway(store)
    gateway.answer(5)
    await gateway.sync.sync()
    store.up = False
    async with asyncio.TaskGroup() as group:
        task = group.create_task(gateway.sync.run())
        await asyncio.sleep(0)
        gateway.clock.advance(700.0)
        await asyncio.sleep(1.1)
        task.cancel()
    assert not gateway.sync.available
    store.up = True
    gateway.clock.advance(2 * 86400.0)
    await store.roll_up(int(gateway.clock.wall() // 300))
    await gateway.sync.sync()
    assert gateway.weight > 0


@pytest.mark.parametrize("seed", range(5))
async def test_a_store_that_lost_its_data_leaves_no_impossible_sums(seed):
    """A cut refers to observations; when a store was emptied they are no longer there to be cut."""
    dice = random.Random(seed)
    gateway = Gateway(MemoryStatsStore())
    for step in range(300):
        speed = dice.choice((5.0, 60.0)) if step % 20 < 10 else dice.uniform(5.0, 60.0)
        mode = dice.choice(("ar", "mtp-n3"))
        gateway.answer(mode=mode, tokens=60, tokens_per_second=speed)
        gateway.clock.advance(0.2)
        if step == 150:
            gateway.sync._store = MemoryStatsStore()
        if step % 5 == 0:
            await gateway.sync.sync()
    for table in gateway.knowledge.tables.values():
        for cell in table.observed():
            assert cell.moments.w >= 0
            assert math.isfinite(table.estimate(cell).mean)
    assert 3.0 < gateway.speed() < 80.0
