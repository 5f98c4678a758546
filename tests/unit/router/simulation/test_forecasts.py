"""Forecast intervals are judged by what happened."""

from __future__ import annotations

from typing import Any

import pytest

from router.simulation.forecasts import coverage


def row(seconds: float, **changes: Any) -> dict[str, Any]:
    chosen = {"worker": "w", "mode": "ar", "interval_s": [1.0, 3.0]}
    other = {"worker": "v", "mode": "ar", "excluded_because": "draining"}
    outcome = {"status": "ok", "total_s": seconds + 5.0, "queue_s": 5.0, "retried": False}
    decision = {"worker": "w", "mode": "ar", "candidates": [other, chosen]}
    return {"decision": decision, "outcome": outcome | changes}


def test_the_share_within_and_beyond_is_counted_without_the_wait_before_the_choice():
    found = coverage([row(0.5), row(1.5), row(2.5), row(9.0)])
    assert found is not None
    assert found.as_dict() == {"n": 4, "coverage": 0.5, "median_half_width": 0.5, "above": 0.25}


def test_failures_retries_and_unpriced_choices_do_not_count():
    blind = row(2.0)
    blind["decision"]["candidates"] = []
    rows = [
        row(2.0, status="timeout"),
        row(2.0, retried=True),
        blind,
        {**row(2.0), "decision": None},
    ]
    assert coverage(rows) is None
    assert coverage([*rows, row(2.0)]).n == 1


@pytest.mark.parametrize(("seconds", "covered"), [(1.0, 1.0), (3.0, 1.0), (3.01, 0.0)])
def test_the_ends_belong_to_the_interval(seconds, covered):
    assert coverage([row(seconds)]).coverage == covered
