"""The grid of a sweep: AR once, every combination once, each worker with room for the load."""

from __future__ import annotations

import random

import pytest

from router.bench.one_worker import Bench
from router.bench.sweep import Grid, Place, places_of, settings_of, sweep
from tests.support.supervised import simulated
from workers.clock import SystemClock


def bench(tmp_path):
    import os

    return Bench(tmp_path, dict(os.environ), SystemClock(), random.Random(1))


def test_settings_are_ar_and_every_combination_of_the_given_values():
    specs = [simulated("a", "mtp-n3"), simulated("b", "dflash2-margin", n_min=2)]
    found = settings_of(specs, (1, 3), (0.5,))
    assert [s.label for s in found] == [
        "ar",
        "mtp-n3 n_max=1 p_min=0.5",
        "mtp-n3 n_max=3 p_min=0.5",
        "dflash2-margin n_max=1 p_min=0.5",
        "dflash2-margin n_max=3 p_min=0.5",
    ]
    plain = found[0].spec
    assert (plain.mode, plain.draft, plain.n_max) == ("ar", None, None)
    assert (found[3].spec.n_max, found[3].spec.n_min, found[3].spec.p_min) == (1, 1, 0.5)
    assert found[4].spec.n_min == 2


def test_a_workers_own_values_are_kept_where_none_are_given():
    own = simulated("a", "mtp", n_max=5)
    assert settings_of([own], (), ())[1].spec == own


def test_two_workers_of_a_mode_are_told_apart():
    found = settings_of([simulated("a", "mtp-n3"), simulated("b", "mtp-n3")], (), ())
    assert [s.label for s in found] == ["ar", "mtp-n3@a", "mtp-n3@b"]


def test_places_are_the_product_without_repetitions():
    assert places_of((0, 0), (1, 2), (None,)) == (Place(0, 1), Place(0, 2))


@pytest.mark.slow
async def test_every_setting_gets_the_same_prompts_and_one_that_fails_is_told(tmp_path):
    good = simulated("good", "mtp-n3", script={"step_ms": 0.1})
    broken = simulated("broken", "mtp-margin", args=("--no-such-flag",))
    grid = Grid(
        settings=settings_of([good, broken], (), ()),
        places=(Place(0, 1), Place(40, 2, thinking=True)),
        per_class=1,
        rounds=2,
        max_tokens=24,
    )
    seen = []
    swept = await sweep(grid, bench(tmp_path), seen.append)
    assert set(swept.troubles) == {"mtp-margin"}
    assert "broken (mtp-margin) did not start" in swept.troubles["mtp-margin"]
    work = {
        name: [
            (f.place, f.sample.job.round, f.sample.job.prompt)
            for f in swept.findings
            if f.setting.label == name
        ]
        for name in ("ar", "mtp-n3")
    }
    assert len(work["ar"]) == 2 * 2 * 3
    assert sorted(work["ar"], key=str) == sorted(work["mtp-n3"], key=str)
    assert len(seen) == len(swept.findings)
    assert all(f.sample.error == "" for f in swept.findings)
    assert set(swept.load_s) == {"ar", "mtp-n3"}
