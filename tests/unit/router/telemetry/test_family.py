"""The figures of several processes as one page."""

from __future__ import annotations

import asyncio
import os

from prometheus_client.parser import text_string_to_metric_families

from router.telemetry.family import FRESH_S, Family, merged
from router.telemetry.metrics import Gauges, Metrics, WorkerGauge
from tests.fakes.gateway import HandClock
from tests.fakes.outcomes import outcome
from tests.support.waiting import until


def page(answers: int, *, inflight: int = 0, worker: str = "plain") -> bytes:
    gauges = Gauges([WorkerGauge(worker, "tiny", "ar", True, 4, inflight)], {"tiny": inflight})
    metrics = Metrics(lambda: gauges)
    for _ in range(answers):
        metrics.observe(outcome())
    return metrics.text()


def read(text: bytes) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("worker", "")): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_what_is_counted_is_added_up_and_what_all_see_is_not():
    found = read(merged(page(3, inflight=1), [(page(2, inflight=2), True)]))
    assert found["specroute_requests_total", "prose"] == 5
    assert found["specroute_request_seconds_count", ""] == 5
    assert found["specroute_worker_inflight", "plain"] == 3
    assert found["specroute_worker_slots", "plain"] == 4
    assert found["specroute_worker_up", "plain"] == 1


def test_of_a_process_that_is_gone_the_counts_stay_and_nothing_else():
    found = read(merged(page(3), [(page(2, inflight=2, worker="old"), False)]))
    assert found["specroute_requests_total", "prose"] == 5
    assert ("specroute_worker_up", "old") not in found
    assert found["specroute_worker_inflight", "plain"] == 0


def test_alone_the_page_says_what_it_said():
    assert read(merged(page(3), [])) == read(page(3))


async def test_siblings_find_each_other_in_their_folder(tmp_path):
    clock = HandClock()
    clock.epoch = 0.0
    one, other = (Family(tmp_path, name, lambda: page(2, inflight=1), clock) for name in "ab")
    task = asyncio.ensure_future(other.run())
    await until(lambda: (tmp_path / "b.prom").exists())
    task.cancel()
    clock.now = (tmp_path / "b.prom").stat().st_mtime
    assert read(one.text())["specroute_requests_total", "prose"] == 4
    assert read(one.text())["specroute_worker_inflight", "plain"] == 2
    clock.advance(FRESH_S + 1)
    assert read(one.text())["specroute_worker_inflight", "plain"] == 1
    os.unlink(tmp_path / "b.prom")
    assert read(one.text())["specroute_requests_total", "prose"] == 2
