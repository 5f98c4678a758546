from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from router.core import Reason, Status
from router.telemetry.metrics import Gauges, Metrics, SpeedupGauge, WorkerGauge
from tests.fakes.outcomes import outcome
from workers.timings import Timings

LABELS = {"model": "tiny", "class": "prose", "mode": "mtp-n3"}
CONTRACT = {
    "specroute_requests": {"model", "class", "worker", "mode", "outcome"},
    "specroute_ttft_seconds": {"model", "class", "mode"},
    "specroute_itl_seconds": {"model", "class", "mode"},
    "specroute_request_seconds": {"model", "class", "mode"},
    "specroute_queue_seconds": {"model", "class", "mode"},
    "specroute_overhead_seconds": {"model", "class", "mode"},
    "specroute_draft_tokens": {"model", "class", "mode"},
    "specroute_draft_accepted_tokens": {"model", "class", "mode"},
    "specroute_acceptance_ratio": {"model", "class", "mode"},
    "specroute_decode_tokens_per_second": {"model", "class", "mode"},
    "specroute_speedup_ratio": {"model", "class", "mode"},
    "specroute_speedup_ratio_lower": {"model", "class", "mode"},
    "specroute_speedup_ratio_upper": {"model", "class", "mode"},
    "specroute_worker_up": {"worker"},
    "specroute_worker_slots": {"worker"},
    "specroute_worker_inflight": {"worker"},
    "specroute_queue_depth": {"model"},
    "specroute_explorations": set(),
    "specroute_switches": {"reason"},
    "specroute_class": {"class"},
    "specroute_refusals": {"reason"},
    "specroute_redis_up": set(),
}


def families(metrics: Metrics):
    return {f.name: f for f in text_string_to_metric_families(metrics.text().decode())}


def value(metrics: Metrics, name: str, **labels) -> float:
    samples = [s for f in families(metrics).values() for s in f.samples if s.name == name]
    return next(s.value for s in samples if labels.items() <= s.labels.items())


def full() -> Metrics:
    gauges = Gauges((WorkerGauge("prose", "tiny", "mtp-n3", True, 2, 1),), {"tiny": 3}, True)
    speedup = SpeedupGauge("tiny", "prose", "mtp-n3", 1.4, 1.3, 1.5)
    metrics = Metrics(lambda: gauges, lambda: [speedup])
    metrics.observe(outcome(itl_s=(0.01, 0.02)))
    metrics.observe(outcome(worker="other", reason=Reason.EXPLORATION))
    metrics.observe(outcome(status=Status.SHED, error_code="queue_full", worker="", mode=""))
    return metrics


def test_names_and_labels_are_the_contracts():
    found = families(full())
    assert found.keys() >= CONTRACT.keys()
    for name, labels in CONTRACT.items():
        used = {frozenset(s.labels) - {"le"} for s in found[name].samples}
        assert used == {frozenset(labels)}, name


def test_tokens_are_counted_exactly():
    metrics, done = Metrics(), outcome()
    for _ in range(1000):
        metrics.observe(done)
    t = done.timings
    assert value(metrics, "specroute_draft_tokens_total", **LABELS) == 1000 * t.draft_n
    accepted = value(metrics, "specroute_draft_accepted_tokens_total", **LABELS)
    assert accepted == 1000 * t.draft_n_accepted
    assert value(metrics, "specroute_generation_tokens_total", **LABELS) == 1000 * t.predicted_n


def test_tokens_of_an_answer_without_timings_are_counted_by_its_usage():
    metrics = Metrics()
    metrics.observe(outcome(timings=Timings(), prompt_tokens=12, completion_tokens=30))
    assert value(metrics, "specroute_generation_tokens_total", **LABELS) == 30
    assert value(metrics, "specroute_prompt_tokens_total", **LABELS) == 12


def test_requests_are_counted_by_how_they_ended():
    metrics = full()
    labels = {"worker": "prose", "outcome": "ok"}
    assert value(metrics, "specroute_requests_total", **LABELS, **labels) == 1
    assert value(metrics, "specroute_requests_total", outcome="shed", worker="none") == 1
    assert value(metrics, "specroute_refusals_total", reason="queue_full") == 1
    assert value(metrics, "specroute_explorations_total") == 1
    assert value(metrics, "specroute_class_total", **{"class": "prose"}) == 3


def test_a_change_of_a_classes_worker_is_a_switch():
    assert value(full(), "specroute_switches_total", reason="exploration") == 1


def test_histograms_have_sum_and_count():
    metrics = full()
    assert value(metrics, "specroute_itl_seconds_count", **LABELS) == 2
    assert value(metrics, "specroute_itl_seconds_sum", **LABELS) == pytest.approx(0.03)
    assert value(metrics, "specroute_itl_seconds_bucket", **LABELS, le="0.01") == 1
    assert value(metrics, "specroute_itl_seconds_bucket", **LABELS, le="+Inf") == 2
    assert value(metrics, "specroute_ttft_seconds_count", **LABELS) == 2


def test_gauges_and_speedups_are_asked_for_at_the_scrape():
    metrics = full()
    assert value(metrics, "specroute_worker_inflight", worker="prose") == 1
    assert value(metrics, "specroute_queue_depth", model="tiny") == 3
    assert value(metrics, "specroute_redis_up") == 1
    assert value(metrics, "specroute_speedup_ratio", **LABELS) == 1.4
    assert value(metrics, "specroute_speedup_ratio_lower", **LABELS) == 1.3


def test_unknown_acceptance_is_absent_and_not_zero():
    metrics = Metrics()
    done = outcome(mode="ar", worker="plain")
    metrics.observe(replace(done, timings=replace(done.timings, draft_n=None)))
    assert not families(metrics)["specroute_acceptance_ratio"].samples
    assert value(metrics, "specroute_decode_tokens_per_second", mode="ar") == pytest.approx(50.0)


def test_recent_answers_weigh_more_in_the_speed():
    metrics = Metrics()
    metrics.observe(outcome(tokens_per_second=10.0))
    for _ in range(100):
        metrics.observe(outcome(tokens_per_second=80.0))
    assert value(metrics, "specroute_decode_tokens_per_second", **LABELS) > 75
    ratio = value(metrics, "specroute_acceptance_ratio", **LABELS)
    t = outcome().timings
    assert ratio == pytest.approx(t.draft_n_accepted / t.draft_n)
