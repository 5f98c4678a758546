from __future__ import annotations

import math
from random import Random
from statistics import median

import pytest

from router.telemetry.levels import Arm, Text
from router.telemetry.speeds import SpeedModel
from router.telemetry.speedups import MIN_ANSWERS, Stratum, compare, speedups
from router.telemetry.stats import Moments
from router.telemetry.store.base import TotalName

PLAIN, MTP = Arm("m", "kp", "ar"), Arm("m", "km", "mtp-n3")
PROSE, CODE, LONG = Text("prose"), Text("structured"), Text("prose", context=2)


def model(*rows: tuple[Arm, Text, int, float, int]) -> SpeedModel:
    """(arm, text, occupancy, tokens per second, answers)."""
    made = SpeedModel()
    for arm, text, occupancy, speed, count in rows:
        for _ in range(count):
            made.learn(arm, text, occupancy, math.log(speed), 1.0)
    return made


def rows_of(made: SpeedModel, totals=None):
    return {(r.workload_class, r.mode): r for r in speedups(made, totals)}


def test_the_ratio_of_geometric_means_to_ar_pooled_over_classes():
    made = model((PLAIN, PROSE, 0, 20.0, 15), (PLAIN, CODE, 0, 20.0, 15), (MTP, CODE, 0, 50.0, 30))
    row = rows_of(made)["structured", "mtp-n3"]
    assert row.speedup == pytest.approx(2.5)
    assert row.ci_low <= 2.5 <= row.ci_high
    assert row.decode_tps == pytest.approx(50.0)
    assert (row.n, row.n_plain) == (30, 30)
    assert rows_of(made)["structured", "ar"].n == 15


def test_only_like_conditions_are_compared():
    """AR's slow answers under load must not make a mode that ran alone look fast."""
    made = model(
        (PLAIN, PROSE, 0, 20.0, 30),
        (PLAIN, PROSE, 3, 5.0, 300),
        (PLAIN, LONG, 0, 10.0, 300),
        (MTP, PROSE, 0, 30.0, 30),
    )
    row = rows_of(made)["prose", "mtp-n3"]
    assert row.speedup == pytest.approx(1.5)
    assert row.n_plain == 30


@pytest.mark.parametrize(("plain", "other"), [(MIN_ANSWERS - 1, 50), (50, MIN_ANSWERS - 1)])
def test_below_twenty_answers_on_either_side_nothing_is_claimed(plain, other):
    made = model((PLAIN, PROSE, 0, 20.0, plain), (MTP, PROSE, 0, 30.0, other))
    row = rows_of(made)["prose", "mtp-n3"]
    assert row.speedup is None
    assert row.ci_low is None
    assert row.as_dict()["n"] == other


def test_without_ar_there_is_no_speedup():
    assert rows_of(model((MTP, PROSE, 0, 30.0, 50)))["prose", "mtp-n3"].speedup is None


def test_ar_is_the_unit():
    row = rows_of(model((PLAIN, PROSE, 0, 20.0, 50)))["prose", "ar"]
    assert (row.speedup, row.ci_low, row.ci_high) == (1.0, 1.0, 1.0)


def test_acceptance_comes_from_the_plain_totals():
    made = model((MTP, PROSE, 0, 30.0, 50))
    totals = {TotalName("m", "prose", "mtp-n3"): {"draft_n": 200.0, "draft_n_accepted": 150.0}}
    assert rows_of(made, totals)["prose", "mtp-n3"].acceptance == 0.75
    assert rows_of(made)["prose", "mtp-n3"].acceptance is None


def moments(rng: Random, mean: float, count: int) -> Moments:
    made = Moments()
    for _ in range(count):
        made.add(mean + rng.gauss(0.0, 0.2), 1.0)
    return made


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """The design's bar: at least 93 % of 2,000 runs, half-width at most 10 % at n = 100."""
    rng, truth, covered, widths = Random(11), math.log(1.3), 0, []
    alone, loaded = Stratum(0, False, 0), Stratum(0, False, 2)
    for _ in range(2000):
        mode = {alone: moments(rng, truth, 70), loaded: moments(rng, truth - 0.5, 30)}
        plain = {alone: moments(rng, 0.0, 60), loaded: moments(rng, -0.5, 40)}
        found = compare(mode, plain)
        covered += found.low <= 1.3 <= found.high
        widths.append((found.high - found.low) / 2 / found.ratio)
    assert 0.93 <= covered / 2000 <= 0.97
    assert median(widths) <= 0.10


def test_the_interval_is_honest_at_the_smallest_sample():
    rng, covered = Random(12), 0
    one = Stratum(0, False, 0)
    for _ in range(2000):
        found = compare({one: moments(rng, 0.2, 20)}, {one: moments(rng, 0.0, 20)})
        covered += found.low <= math.exp(0.2) <= found.high
    assert covered / 2000 >= 0.93
