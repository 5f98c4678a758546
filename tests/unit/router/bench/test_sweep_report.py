"""Known samples of a grid give known figures, and everything doubtful is told."""

from __future__ import annotations

import pytest

from router.bench.load import Job, Sample
from router.bench.sweep import Finding, Place, Setting, Swept
from router.bench.sweep_report import draw, sweep_report
from router.bench.workload import Prompt
from workers.spec import WorkerSpec
from workers.timings import Timings

AR = Setting("ar", WorkerSpec("plain", "m", "ar"))
MTP = Setting("mtp-n3 n_max=2", WorkerSpec("mtp", "m", "mtp-n3", n_max=2))


def found(setting, tps, *, kind="structured", place=None, thought=False, error="", tokens=101):
    prompt = Prompt(kind, "x", "en", f"q{tps}")
    job = Job(setting.label, prompt, "m", 1, 100, 0)
    timings = Timings(
        predicted_n=tokens,
        predicted_ms=1000.0 * (tokens - 1) / tps,
        prompt_n=10,
        cache_n=2,
        **({"draft_n": 80, "draft_n_accepted": 40} if setting is MTP else {}),
    )
    sample = Sample(job, error=error, total_s=1.0, ttft_s=0.1, thought=thought, timings=timings)
    return Finding(setting, place or Place(), sample)


def report(*findings, troubles=None):
    return sweep_report(Swept((AR, MTP), tuple(findings), "b1", {"ar": 1.0}, troubles or {}))


def test_speed_ups_are_against_ar_over_all_classes_of_the_same_place():
    made = report(
        *(found(AR, tps) for tps in (90.0, 110.0)),
        *(found(AR, tps, kind="prose") for tps in (95.0, 105.0)),
        *(found(MTP, tps) for tps in (190.0, 210.0)),
        *(found(MTP, 50.0, place=Place(2000)) for _ in range(2)),
    )
    rows = {(r["setting"], r["class"], r["length"]): r for r in made["rows"]}
    mtp = rows["mtp-n3 n_max=2", "structured", 0]
    assert mtp["speedup"]["ratio"] == pytest.approx(2.0, rel=0.01)
    assert mtp["speedup"]["lower"] > 1.5
    assert (mtp["acceptance"], mtp["n_max"]) == (0.5, 2)
    assert mtp["mean_len"] == pytest.approx(5 / 3, 0.01)
    assert mtp["prompt_tokens"] == 12
    assert rows["mtp-n3 n_max=2", "structured", 2000]["speedup"] is None  # no AR there
    (best,) = [b for b in made["best"] if b["class"] == "structured"]
    assert (best["setting"], best["clear"]) == ("mtp-n3 n_max=2", True)
    assert made["overall"][0]["setting"] == "mtp-n3 n_max=2"


def test_what_is_doubtful_is_told():
    made = report(
        found(AR, 100.0),
        found(AR, 100.0, error="HTTP 500"),
        found(AR, 100.0, tokens=4),
        found(AR, 100.0, kind="reasoning", thought=False),
        troubles={"mtp-n3 n_max=2": "mode mtp-n3 does not speculate"},
    )
    told = "\n".join(made["problems"])
    assert "does not speculate" in told
    assert "1 requests failed, the first one: HTTP 500" in told
    assert "1 answers of fewer than 16 tokens" in told
    assert "thinking on asked, 0% seen" in told


def test_a_plot_is_drawn(tmp_path):
    path = tmp_path / "sweep.png"
    draw(report(found(AR, 100.0), found(AR, 101.0), found(MTP, 150.0), found(MTP, 160.0)), path)
    assert path.read_bytes().startswith(b"\x89PNG")
