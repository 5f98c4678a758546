"""What every stats store must do, run over all of them; the Redis one against a real server."""

from __future__ import annotations

import pytest

from router.telemetry.stats import Moments
from router.telemetry.store import STORES, MemoryStatsStore, StoreUnavailable, open_store
from router.telemetry.store.base import (
    DAY_EPOCHS,
    KEEP_DAYS,
    Batch,
    CellName,
    Cut,
    Row,
    TotalName,
)

CELL, OTHER = CellName("v", '[["m","k","ar"],["prose"],0]'), CellName("n", '["m"]')
TOTAL = TotalName("model:with|odd chars", "prose", "mtp-n3")
NOW = 300 * DAY_EPOCHS + 17


@pytest.fixture(params=["memory", "redis"])
async def store(request):
    if request.param == "memory":
        yield MemoryStatsStore()
        return
    opened = open_store(request.getfixturevalue("redis_url"))
    yield opened
    await opened.aclose()


def batch(number: int = 0, gateway: str = "g", epoch: int = NOW, weight: float = 2.0, **parts):
    rows = {Row(epoch, CELL): Moments(1.0, weight, 3 * weight, 9 * weight)}
    return Batch(gateway, number, **({"rows": rows} | parts))


async def test_increments_add_up(store):
    await store.publish(batch(0))
    await store.publish(batch(1, weight=0.5))
    await store.publish(batch(0, gateway="other"))
    shared = await store.load()
    found = shared.epochs[NOW][CELL]
    assert (found.n, found.w, found.wy, found.wyy) == pytest.approx((3.0, 4.5, 13.5, 40.5))


async def test_a_batch_is_counted_once(store):
    for _ in range(3):
        await store.publish(batch(5))
    await store.publish(batch(4))
    assert (await store.load()).epochs[NOW][CELL].n == 1.0
    await store.publish(batch(6))
    assert (await store.load()).epochs[NOW][CELL].n == 2.0


async def test_totals_are_exact(store):
    for number in range(50):
        sums = {"requests": 1, "predicted_n": 123_457, "predicted_ms": 0.25}
        await store.publish(batch(number, totals={TOTAL: sums}))
    totals = await store.totals()
    assert totals == {TOTAL: {"requests": 50, "predicted_n": 6_172_850, "predicted_ms": 12.5}}


async def test_a_fresh_store_is_empty(store):
    shared = await store.load()
    assert (dict(shared.epochs), dict(shared.days), dict(shared.cuts)) == ({}, {}, {})
    assert await store.totals() == {}


async def test_cuts_are_kept_the_last_one_counts(store):
    for number, factor in enumerate((0.5, 0.125)):
        cut = Cut(NOW, factor, Moments(1.0, 2.0, 3.0, 5.0), -0.25 * factor, 0.75)
        await store.publish(batch(number, cuts={CELL: cut, OTHER: cut}))
    assert (await store.load()).cuts == {CELL: cut, OTHER: cut}


async def test_what_is_older_than_a_day_rolls_up_once(store):
    old = NOW - DAY_EPOCHS
    for number, epoch in enumerate((old, old - 1, NOW)):
        await store.publish(batch(number, epoch=epoch))
    for _ in range(2):
        await store.roll_up(NOW)
    shared = await store.load()
    assert set(shared.epochs) == {NOW}
    assert shared.days[old // DAY_EPOCHS][CELL].n == 2.0


async def test_a_cut_is_applied_when_its_past_rolls_up(store):
    old = NOW - DAY_EPOCHS
    await store.publish(batch(0, epoch=old - 1, weight=4.0))
    await store.publish(batch(1, epoch=old, weight=4.0))
    cut = Cut(old, 0.5, Moments(1.0, 3.0, 9.0, 27.0), -2.0, -2.0)
    await store.publish(batch(2, rows={}, cuts={CELL: cut}))
    unmoved = (await store.load()).epochs[old][CELL].wy
    for _ in range(2):
        await store.roll_up(NOW)
    day = (await store.load()).days[old // DAY_EPOCHS][CELL]
    assert day.w == pytest.approx(2.0 + 1.0 + 1.5)
    moved = (unmoved * 0.5 - 2.0 * 2.0) + (unmoved - 9.0) + (9.0 * 0.5 - 2.0 * 1.5)
    assert day.wy == pytest.approx(moved)


async def test_cuts_last_as_long_as_the_days(store):
    """A gateway that starts next week must begin where the others are."""
    cut = Cut(NOW - DAY_EPOCHS, 0.5, Moments(), -2.0, -2.0)
    await store.publish(batch(0, rows={}, cuts={CELL: cut}))
    await store.roll_up(NOW + 7 * DAY_EPOCHS)
    assert (await store.load()).moved == {CELL: -2.0}
    await store.roll_up(NOW + (KEEP_DAYS + 1) * DAY_EPOCHS)
    assert (await store.load()).cuts == {}


async def test_days_last_thirty_days(store):
    day = NOW // DAY_EPOCHS
    for number, age in enumerate((KEEP_DAYS + 2, 5)):
        await store.publish(batch(number, epoch=(day - age) * DAY_EPOCHS))
    await store.roll_up(NOW)
    await store.roll_up(NOW)
    assert set((await store.load()).days) == {day - 5}


async def test_late_increments_to_an_old_epoch_are_still_seen(store):
    await store.publish(batch(0, epoch=NOW - 5))
    await store.publish(batch(1, epoch=NOW))
    await store.load()
    await store.publish(batch(2, epoch=NOW - 5))
    assert (await store.load()).epochs[NOW - 5][CELL].n == 2.0


async def test_a_store_that_is_away_says_so(tmp_path):
    gone = open_store(f"unix://{tmp_path}/nobody.sock")
    for call in (gone.publish(batch()), gone.load(), gone.totals(), gone.roll_up(NOW)):
        with pytest.raises(StoreUnavailable, match="Redis"):
            await call
    await gone.aclose()


@pytest.mark.parametrize("scheme", STORES)
def test_every_scheme_of_the_catalogue_opens_without_connecting(scheme):
    address = {"unix": "/nobody.sock", "redis+sentinel": "127.0.0.1:1/main"}
    assert open_store(f"{scheme}://{address.get(scheme, '127.0.0.1:1')}") is not None


def test_another_scheme_is_refused_with_what_there_is():
    with pytest.raises(ValueError, match="only for memory, redis"):
        open_store("postgres://x")
