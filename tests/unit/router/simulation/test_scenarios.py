"""The rows of the policy's bar that profiles cannot show; a few seeds each, so with some room."""

from __future__ import annotations

from statistics import fmean

import pytest

from router.simulation import scenarios


@pytest.mark.slow
def test_load_moves_traffic_to_ar_and_back_without_flapping():
    runs = [scenarios.crossover(seed) for seed in range(4)]
    for load in (1, 2, 4, 8):
        assert fmean(run.by_load[load] for run in runs) >= 0.96
    assert fmean(run.changes for run in runs) < 1.0


@pytest.mark.slow
def test_chats_cost_no_more_than_the_better_simple_rule():
    runs = [scenarios.chats(seed) for seed in range(4)]
    assert fmean(run.ratio for run in runs) <= 1.03


@pytest.mark.slow
def test_factors_are_learned_from_half_the_answers():
    runs = [scenarios.factors(seed, 600) for seed in range(6)]
    assert fmean(r.factored for r in runs) <= 0.6 * fmean(r.direct for r in runs)


def test_the_summary_names_every_row(monkeypatch):
    monkeypatch.setattr(scenarios, "crossover", lambda _seed: scenarios.Crossover(LOADS, 0.5))
    monkeypatch.setattr(scenarios, "chats", lambda _seed: scenarios.Chats(10.0, 10.0, 20.0))
    monkeypatch.setattr(scenarios, "factors", lambda _seed: scenarios.Factors(20, 50))
    assert scenarios.summary([0, 1]) == {
        "crossover": LOADS,
        "changes_per_20_requests": 0.5,
        "chats_over_best_rule": 1.0,
        "factored_requests": 20.0,
        "direct_requests": 50.0,
        "factored_over_direct": 0.4,
    }


LOADS = {1: 1.0, 2: 0.99, 4: 0.98, 8: 0.97}
