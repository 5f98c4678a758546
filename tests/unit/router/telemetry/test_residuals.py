from __future__ import annotations

from random import Random

import pytest

from router.telemetry.residuals import Run, Scatter
from router.telemetry.stats import EffectTable, Level, Shape


def test_a_run_begins_anew_when_its_sum_is_gone():
    run = Run()
    run.follow(2.0, 0.5)
    run.follow(1.0, 0.3)
    assert (run.total, run.answers, run.offs) == (3.0, 2, 0.8)
    run.follow(-4.0, -1.0)
    assert (run.total, run.answers, run.offs) == (0.0, 0, 0.0)


@pytest.mark.parametrize(("sd", "low", "high"), [(1.0, 1.0, 1.15), (2.0, 2.0, 4.5)])
def test_only_more_scatter_than_supposed_counts(sd, low, high):
    rng, scatter = Random(3), Scatter()
    for _ in range(600):
        scatter.follow(rng.gauss(0.0, sd) ** 2)
    assert low <= scatter.excess <= high


def _learned(sd: float) -> EffectTable:
    rng, table = Random(5), EffectTable(Shape(noise_sd=0.1))
    cell = table.cell("a", (Level("root", 1.0),), 0.0)
    for _ in range(300):
        table.add(cell, rng.gauss(0.0, sd), 1.0)
    return table


def test_a_noisy_machine_is_believed_less():
    usual, noisy = (_learned(sd).estimate(_learned(sd).find("a")) for sd in (0.1, 0.35))
    assert usual.weight > 290.0
    assert noisy.weight < 100.0
    assert noisy.variance > 3 * usual.variance
