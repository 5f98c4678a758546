"""Forecast intervals are judged by what happened."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from router.core import Candidate, CostEstimate, Reason, RoutingDecision, Status
from router.simulation.forecasts import coverage
from tests.fakes.logged import logged_row
from tests.fakes.outcomes import outcome

if TYPE_CHECKING:
    from router.simulation.logged import Logged

CHOSEN = Candidate("w", "ar", CostEstimate(interval_s=(1.0, 3.0)))
ENDLESS = Candidate("w", "ar", CostEstimate(interval_s=(1.0, math.inf)))
OTHER = Candidate("v", "ar", excluded_because="draining")


def row(seconds: float, candidates=(OTHER, CHOSEN), **changes: Any) -> Logged:
    decision = RoutingDecision("w", "ar", Reason.PREDICTED_FASTEST, candidates, "learned")
    values = {"decision": decision, "total_s": seconds + 5.0, "queue_s": 5.0}
    return logged_row(outcome(worker="w", mode="ar", **(values | changes)))


def test_the_share_within_and_beyond_is_counted_without_the_wait_before_the_choice():
    found = coverage([row(0.5), row(1.5), row(2.5), row(9.0)])
    assert found is not None
    assert found.as_dict() == {"n": 4, "coverage": 0.5, "median_half_width": 0.5, "above": 0.25}


def test_failures_retries_and_unpriced_choices_do_not_count():
    rows = [
        row(2.0, status=Status.TIMEOUT),
        row(2.0, retried=True),
        row(2.0, candidates=()),
        row(2.0, candidates=(ENDLESS,)),
        row(2.0, decision=None),
    ]
    assert coverage(rows) is None
    assert coverage([*rows, row(2.0)]).n == 1


@pytest.mark.parametrize(("seconds", "covered"), [(1.0, 1.0), (3.0, 1.0), (3.01, 0.0)])
def test_the_ends_belong_to_the_interval(seconds, covered):
    assert coverage([row(seconds)]).coverage == covered
