"""Classes and totals, with and without the store."""

from __future__ import annotations

from router.api.figures import Figures
from router.core import Outcome, Status
from router.telemetry import Knowledge
from router.telemetry.sharing import StatsSync
from router.telemetry.store import MemoryStatsStore, StoreUnavailable
from tests.fakes.gateway import HandClock, classified
from workers.timings import Timings


def _outcome(mode: str, milliseconds: float, number: int) -> Outcome:
    _, found = classified("Count from 1 to 20.")
    drafted = {} if mode == "ar" else {"draft_n": 60, "draft_n_accepted": 45}
    timings = Timings(
        cache_n=0,
        prompt_n=20,
        prompt_ms=10.0,
        predicted_n=101,
        predicted_ms=milliseconds + number % 3,
        **drafted,
    )
    return Outcome(
        request_id=str(number),
        endpoint="/v1/chat/completions",
        model="tiny",
        status=Status.OK,
        wall_time=1_700_000_000.0,
        classification=found,
        mode=mode,
        worker=mode,
        worker_key=mode,
        occupancy=1,
        context_tokens=121,
        timings=timings,
        completion_tokens=101,
    )


class _Away(MemoryStatsStore):
    async def totals(self):
        raise StoreUnavailable("away")


async def _figures(store) -> Figures:
    knowledge = Knowledge()
    sync = StatsSync(knowledge, store, HandClock(), gateway="g")
    for number in range(30):
        for mode, milliseconds in (("ar", 1000.0), ("mtp-n3", 500.0)):
            outcome = _outcome(mode, milliseconds, number)
            knowledge.observe(outcome)
            sync.record(outcome)
    await sync.sync()
    return Figures(knowledge, store)


async def test_a_classes_row_has_the_contracts_fields():
    (row,) = await (await _figures(MemoryStatsStore())).classes()
    assert (row["model"], row["class"], row["n"]) == ("tiny", "structured", 60)
    fast = next(r for r in row["speedups"] if r["mode"] == "mtp-n3")
    assert fast.keys() == {
        *("mode", "speedup", "ci_low", "ci_high", "n", "acceptance", "decode_tps"),
    }
    assert 1.9 < fast["ci_low"] <= fast["speedup"] <= fast["ci_high"] < 2.1
    assert fast["acceptance"] == 0.75


async def test_totals_are_plain_sums():
    rows = await (await _figures(MemoryStatsStore())).totals()
    by_mode = {row["mode"]: row for row in rows}
    assert by_mode["mtp-n3"]["draft_n_accepted"] == 30 * 45
    assert by_mode["ar"]["requests_ok"] == 30


async def test_without_the_store_what_is_known_is_told():
    figures = await _figures(_Away())
    (row,) = await figures.classes()
    assert row["n"] == 60
    assert await figures.totals() == []
