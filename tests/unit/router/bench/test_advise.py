"""Plans from known speeds: who serves what, what it gains, what fits."""

from __future__ import annotations

import math
import random

import pytest

from router.bench.advise import (
    NotMeasured,
    advise,
    draw_plans,
    read_measurements,
    recommended,
    sentences,
)
from router.bench.measured import parse_report
from router.bench.traffic import Shape


def row(setting, kind, tps, *, spread=0.02, tokens=20, concurrency=1, ttft=0.0):
    speed = {"mean": tps, "lower": tps * (1 - spread), "upper": tps * (1 + spread)}
    return {
        "setting": setting,
        "class": kind,
        "decode_tps": speed,
        "prompt_tokens": tokens,
        "concurrency": concurrency,
        "ttft_ms": {"p50": ttft},
    }


ROWS = [
    *(row("ar", kind, 100.0) for kind in ("structured", "prose")),
    row("dflash2", "structured", 200.0),
    row("dflash2", "prose", 50.0),
    row("mtp", "structured", 101.0),
    row("mtp", "prose", 101.0),
]
SETTINGS = [{"setting": n, "memory_gb": 10.0} for n in ("ar", "dflash2", "mtp")]
TRAFFIC = [Shape("structured", 20, 101), Shape("prose", 20, 101)]


def plans(rows=ROWS, traffic=TRAFFIC, memory=None, most=3, settings=SETTINGS):
    cells = read_measurements([parse_report({"rows": rows, "settings": settings})], 1)
    return advise(traffic, cells, most=most, memory_gb=memory, rng=random.Random(1))


def test_two_settings_that_each_win_a_class_are_the_plan():
    found = plans()
    best = recommended(found)
    assert best.settings == ("ar", "dflash2")  # a third would gain half a percent
    assert best.seconds == pytest.approx((0.5 + 1.0) / 2)
    assert best.vs_ar.mean == pytest.approx(2.0 / 1.5)
    assert best.vs_ar.lower > 1.2
    assert best.vs_best_single.mean == pytest.approx((100 / 101 + 100 / 101) / 1.5, rel=1e-3)
    assert best.routes == {"structured": "dflash2", "prose": "ar"}
    assert best.shares == {"ar": 0.5, "dflash2": 0.5}
    assert best.memory_gb == 20.0
    said = " ".join(sentences(TRAFFIC, found))
    assert "Run ar + dflash2" in said
    assert "prose goes to ar." in said


def test_what_does_not_fit_is_no_plan():
    assert {len(p.settings) for p in plans(memory=15.0)} == {1}
    with pytest.raises(NotMeasured, match="fits into 5 GB"):
        plans(memory=5.0)


def test_the_cell_with_the_nearest_prompt_length_counts():
    rows = [*ROWS, row("dflash2", "structured", 20.0, tokens=6000)]
    long = [Shape("structured", 5000, 101)]
    assert plans(rows, long, most=1)[0].settings == ("mtp",)


def test_reading_a_prompt_takes_its_time():
    rows = [row("ar", "prose", 100.0, ttft=1000.0, tokens=100)]
    (only,) = plans(rows, [Shape("prose", 300, 1)], settings=[])
    assert only.seconds == pytest.approx(3.0)
    assert only.memory_gb is None


def test_uncertain_gains_are_called_so():
    rows = [
        row("ar", "prose", 100.0, spread=0.5),
        row("mtp", "prose", 103.0, spread=0.5),
    ]
    found = plans(rows, [Shape("prose", 20, 101)], settings=[])
    assert "not certain yet" in " ".join(sentences([Shape("prose", 20, 101)], found))


def test_what_was_not_measured_is_said():
    with pytest.raises(NotMeasured, match="not measured: reasoning"):
        plans(traffic=[Shape("reasoning", 1, 1)])
    with pytest.raises(NotMeasured, match="at 4 at once; there is: 1"):
        read_measurements([parse_report({"rows": ROWS})], 4)
    with pytest.raises(NotMeasured, match="AR was not measured"):
        read_measurements([parse_report({"rows": [r for r in ROWS if r["setting"] != "ar"]})], 1)


def test_the_output_of_bench_is_read_at_the_load_that_was_asked_for():
    def part(load, tps):
        rows = [{**row(name, "prose", tps), "target": name} for name in ("routed", "ar")]
        for one in rows:
            del one["setting"]
            del one["concurrency"]
        return {"concurrency": load, "rows": rows}

    alone = part(1, 100.0)
    report = {**alone, "by_concurrency": [alone, part(4, 30.0)]}
    for load, tps in ((1, 100.0), (4, 30.0)):
        cells = read_measurements([parse_report(report)], load)
        assert cells.settings == ("ar",)
        assert cells.nearest("ar", Shape("prose", 20, 101)).log_tps == pytest.approx(math.log(tps))
    with pytest.raises(NotMeasured, match="at 2 at once; there is: 1, 4"):
        read_measurements([parse_report(report)], 2)
    with pytest.raises(NotMeasured, match="at 4 at once; there is: 1"):
        read_measurements([parse_report(alone)], 4)


def test_a_plot_is_drawn(tmp_path):
    draw_plans(plans(), tmp_path / "plans.png")
    assert (tmp_path / "plans.png").read_bytes().startswith(b"\x89PNG")


def test_pinned_workers_of_a_gateway_are_settings_by_their_mode():
    def pinned(worker, mode, tps, n):
        one = row("", "prose", tps) | {"target": worker, "mode": mode, "n": n}
        return {
            name: value for name, value in one.items() if name not in ("setting", "prompt_tokens")
        }

    rows = [
        pinned("routed", None, 300.0, 30),
        pinned("plain", "ar", 50.0, 10),
        pinned("left", "mtp-n3", 100.0, 10),
        pinned("right", "mtp-n3", 200.0, 30),
        pinned("arms", None, 70.0, 10),
    ]
    cells = read_measurements([parse_report({"rows": rows})], 1)
    assert set(cells.settings) == {"ar", "mtp-n3", "arms"}
    (pooled,) = cells.cells["mtp-n3", "prose"]
    assert math.exp(pooled.log_tps) == pytest.approx(100.0**0.25 * 200.0**0.75)
    (alone,) = cells.cells["ar", "prose"]
    assert pooled.sigma == pytest.approx(alone.sigma * math.hypot(0.25, 0.75))


def test_requests_that_take_no_time_are_compared_all_the_same():
    rows = [row("ar", "prose", 100.0), row("mtp", "prose", 200.0)]
    found = plans(rows, [Shape("prose", 0, 1)], settings=[])
    assert found[0].vs_ar.mean == 1.0


def test_an_interval_that_says_nothing_counts_as_unknown():
    odd = row("ar", "prose", 100.0)
    odd["decode_tps"] |= {"lower": 1e-300}
    found = plans([odd], [Shape("prose", 20, 101)], settings=[])
    assert math.isfinite(found[0].vs_ar.upper)
