"""The exploration budget holds over any 1,000 requests, whatever they cost."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from router.policy.explore import Explorer, Option
from router.policy.settings import PolicySettings


@settings(max_examples=5)
@given(st.integers(0, 10_000), st.floats(0.0, 0.8), st.integers(2, 6))
def test_the_budget_is_never_exceeded(seed, sigma, arms):
    rng, explorer, rows = Random(seed), Explorer(PolicySettings()), []
    for _ in range(1500):
        size = rng.lognormvariate(0.0, sigma)
        costs = [size * (1.0 + 0.4 * rng.random()) for _ in range(arms)]
        options = [Option(cost, 0.4 * cost, cost) for cost in costs]
        best = costs.index(min(costs))
        pick = explorer.pick(options, best, rng.random(), 1000.0)
        loss = costs[pick.arm] - costs[best]
        explorer.budget.book(loss, costs[pick.arm])
        rows.append((loss, costs[pick.arm]))
    for start in range(0, len(rows) - 1000, 50):
        window = rows[start : start + 1000]
        assert sum(loss for loss, _ in window) <= 0.02 * sum(served for _, served in window)
