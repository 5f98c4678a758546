"""Known samples give known figures."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from router.bench.load import Job, Sample
from router.bench.report import compare, geometric_mean, summarise
from router.bench.workload import Prompt
from workers.timings import Timings


def sample(target: str, seconds: float, *, text: str = "a", error: str = "", **timings) -> Sample:
    prompt = Prompt("structured", "json", "en", text)
    job = Job(target, prompt, model=target, round=1, max_tokens=10, seed=0)
    return Sample(job, error=error, total_s=seconds, ttft_s=0.1, timings=Timings(**timings))


def test_a_row_uses_the_contracts_definitions():
    rows = summarise(
        [
            sample("m", 1, predicted_n=101, predicted_ms=1000.0, draft_n=80, draft_n_accepted=60),
            sample("m", 1, predicted_n=201, predicted_ms=1000.0, draft_n=20, draft_n_accepted=20),
        ]
    )
    (row,) = rows
    assert row.n == 2
    assert row.acceptance == pytest.approx(80 / 100)
    # 300 tokens in (100 - 60) + (200 - 20) verification steps
    assert row.mean_len == pytest.approx(300 / 220, abs=1e-3)
    assert row.decode_tps is not None
    assert row.decode_tps.mean == pytest.approx(math.sqrt(100 * 200))
    assert row.ttft_p50_ms == pytest.approx(100)


def test_nothing_drafted_is_unknown_and_not_zero():
    (row,) = summarise([sample("m", 1, predicted_n=11, predicted_ms=100.0)])
    assert row.acceptance is None
    assert row.mean_len == 1.0


def test_failed_requests_do_not_count():
    assert summarise([sample("m", 1, error="HTTP 500")]) == []


def test_the_interval_narrows_with_more_samples():
    few, many = geometric_mean([90.0, 110.0] * 3), geometric_mean([90.0, 110.0] * 50)
    assert few is not None
    assert many is not None
    assert few.lower < many.lower < many.mean < many.upper < few.upper
    assert geometric_mean([]) is None


def test_routing_is_compared_with_the_best_single_mode_on_common_prompts():
    samples = []
    for text in "abcdef":
        samples += [
            sample("routed", 1.0, text=text),
            sample("ar", 2.0, text=text),
            sample("mtp", 1.5, text=text),
        ]
    samples.append(sample("ar", 0.001, text="only here"))  # not common: must not count
    comparison = compare(samples, routed="routed", rng=random.Random(1))
    assert comparison is not None
    assert comparison.best_single == "mtp"
    assert comparison.ratio.mean == pytest.approx(1.5)
    assert comparison.ratio.lower == pytest.approx(1.5)
    assert comparison.by_target["ar"] == pytest.approx(2.0)


def test_no_comparison_without_another_target():
    assert compare([sample("routed", 1.0)], routed="routed", rng=random.Random(1)) is None


def pinned(worker: str, mode: str) -> Sample:
    found = sample(worker, 1, predicted_n=11, predicted_ms=100.0)
    return replace(found, mode=mode, job=replace(found.job, model=f"tiny@{worker}"))


def test_a_row_of_a_pinned_worker_tells_its_mode_and_one_of_several_modes_none():
    rows = summarise(
        [
            pinned("plain", "ar"),
            pinned("plain", "ar"),
            *(pinned("arms", mode) for mode in ("ar", "mtp-n3")),
            replace(sample("routed", 1, predicted_n=11, predicted_ms=100.0), mode="ar"),
        ]
    )
    modes = {row.target: row.as_dict()["mode"] for row in rows}
    assert modes == {"plain": "ar", "arms": None, "routed": None}
