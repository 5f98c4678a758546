"""The dashboard's history through a real Redis."""

from __future__ import annotations

import pytest

from router.core import Status
from router.telemetry.chronicle import SAMPLED, Chronicle, Sight
from router.telemetry.history import Series, Slice
from router.telemetry.history_store import HistoryStore, HistoryUnavailable
from tests.fakes.gateway import HandClock, record
from tests.fakes.outcomes import outcome
from workers.state import WorkerState


class Flaky:
    """A store whose answers get lost, though what they answer was done."""

    def __init__(self, store: HistoryStore) -> None:
        self.store = store
        self.lose = False

    async def write(self, batch) -> None:
        await self.store.write(batch)
        if self.lose:
            raise HistoryUnavailable("the answer was lost")


@pytest.fixture
async def store(redis_url: str):
    store = HistoryStore.at(redis_url)
    yield store
    await store.aclose()


async def test_what_two_gateways_write_adds_up(store: HistoryStore) -> None:
    clock = HandClock()
    for name in ("one", "two"):
        chronicle = Chronicle(store, clock, gateway=name, look=Sight)
        chronicle.record(outcome(at=1200.0))
        assert await chronicle.flush()
    found = await store.slices([Slice(60, 20), Slice(60, 21)])
    sums = found[Slice(60, 20)][Series("tiny", "prose", "mtp-n3")]
    assert sums["requests"] == 2
    assert sums["decode_ms"] == pytest.approx(4000.0)
    assert found[Slice(60, 21)] == {}
    assert set(await store.gateways()) == {"one", "two"}


async def test_a_batch_whose_answer_was_lost_counts_once(store: HistoryStore) -> None:
    flaky = Flaky(store)
    chronicle = Chronicle(flaky, HandClock(), gateway="g", look=Sight)
    chronicle.record(outcome(at=1200.0))
    flaky.lose = True
    assert not await chronicle.flush()
    chronicle.record(outcome(at=1200.0))
    flaky.lose = False
    assert await chronicle.flush()
    assert await chronicle.flush()
    (sums,) = (await store.slices([Slice(60, 20)]))[Slice(60, 20)].values()
    assert sums["requests"] == 2


async def test_decisions_are_sampled_and_failures_kept_beside_them(store: HistoryStore) -> None:
    chronicle = Chronicle(store, HandClock(), gateway="g", look=Sight)
    for number in range(100):
        chronicle.record(outcome(request_id=f"r{number}", answer_sample=b"xylophone"))
    chronicle.record(outcome(request_id="lost", status=Status.UPSTREAM_ERROR))
    await chronicle.flush()
    entries = await store.decisions()
    assert len(entries) == SAMPLED + 1
    assert entries[0].row["id"] == "lost"
    assert "xylophone" not in str(entries)
    assert await store.decisions(after=entries[1].id) == entries[:1]


async def test_happenings_of_two_gateways_are_told_once(store: HistoryStore) -> None:
    seen = [record("code")]
    clock = HandClock()
    chronicles = [
        Chronicle(store, clock, gateway=name, look=lambda: Sight(workers=tuple(seen)))
        for name in ("one", "two")
    ]
    for chronicle in chronicles:
        await chronicle.flush()
    seen[0] = record("code", state=WorkerState.BACKOFF, reason="killed")
    for chronicle in chronicles:
        await chronicle.flush()
    (told,) = await store.happenings()
    assert told.row["after"] == "backoff"
    assert told.row["reason"] == "killed"


async def test_an_unreachable_redis_is_unavailable() -> None:
    store = HistoryStore.at("redis://127.0.0.1:9")
    with pytest.raises(HistoryUnavailable):
        await store.gateways()
    await store.aclose()
