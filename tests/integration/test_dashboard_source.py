"""Reading a day of a million requests from a real Redis, and Redis going away."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from router.dashboard import source
from router.dashboard.figures import DAY_S, overview, saved
from router.dashboard.serving import DashboardSettings, build
from router.dashboard.source import FRESH_S
from router.telemetry.history_store import HistoryStore, HistoryUnavailable
from router.telemetry.speedups import speedups
from tests.support import simulated_day
from tests.support.redis_server import private_redis
from tests.support.simulated_day import write_day
from tests.support.waiting import until
from workers.clock import SystemClock

log = logging.getLogger(__name__)

SECRET = "cluster-secret"  # noqa: S105


@pytest.fixture
async def dashboard(redis_url: str):
    made = build(DashboardSettings(redis_url, SECRET, "token"))
    yield made
    for close in made.on_close:
        await close()


@pytest.mark.slow
async def test_a_day_of_a_million_requests(dashboard, redis_url: str) -> None:
    now = SystemClock().wall()
    await write_day(redis_url, SECRET, now)
    began = time.process_time()
    snapshot = await dashboard.source.current()
    log.info("a day of 1,000,000 requests read in %.2f s of CPU", time.process_time() - began)
    assert not snapshot.trouble
    assert overview(snapshot, DAY_S).requests == pytest.approx(1_000_000, rel=0.01)
    assert {row.mode for row in snapshot.speedups} == set(simulated_day.MODES)
    gain = {(s.workload_class, s.mode): s.speedup for s in snapshot.speedups}
    assert gain["structured", "dflash2-margin"] == pytest.approx(38 / 21, rel=0.05)
    assert gain["prose", "dflash2-margin"] == pytest.approx(17 / 21, rel=0.1)
    assert saved(snapshot, DAY_S).against_plain > 0
    assert len(snapshot.decisions) == 1500
    assert [r.name for r in snapshot.records] == ["code", "plain", "prose", "spare"]


async def test_only_what_is_new_is_read_again(dashboard, redis_url: str) -> None:
    first = await dashboard.source.current()
    assert await dashboard.source.current() is first
    assert (first.records, first.decisions, first.trouble) == ((), (), "")


async def test_redis_going_away_keeps_the_figures_says_so_and_recovers() -> None:
    socket = Path(tempfile.mkdtemp(prefix="sr-away-")) / "redis.sock"  # under 108 bytes
    url = f"unix://{socket}"
    with private_redis(socket):
        await until(socket.exists)
        lost = build(DashboardSettings(url, SECRET, "token"))
        await until_answers(url)
        await simulated_day.publish_workers(url, SECRET, SystemClock().wall())
        assert len((await lost.source.current()).records) == 4
    await asyncio.sleep(FRESH_S)
    away = await lost.source.current()
    assert away.trouble
    assert len(away.records) == 4
    with private_redis(socket):
        await until_answers(url)
        back = await lost.source.current()
        assert (back.trouble, back.records) == ("", ())
        for close in lost.on_close:
            await close()


async def test_a_redis_that_never_answered(dashboard) -> None:
    lost = build(DashboardSettings("redis://127.0.0.1:9", SECRET, "token"))
    snapshot = await lost.source.current()
    assert snapshot.trouble
    assert snapshot.at == 0.0
    for close in lost.on_close:
        await close()


async def until_answers(url: str) -> None:
    """Wait until that Redis reads."""
    store = HistoryStore.at(url)
    async with asyncio.timeout(20):
        while True:
            with suppress(HistoryUnavailable):
                await store.gateways()
                break
            await asyncio.sleep(0.05)
    await store.aclose()


def test_the_one_source_of_speedups_is_the_gateways() -> None:
    """/ops/classes and /metrics are made by the same function."""
    assert source.speedups is speedups
