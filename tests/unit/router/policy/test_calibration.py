"""Forecast intervals that answers keep missing are widened until they hold."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from router.core import CostEstimate, Status
from router.policy.calibration import IntervalCalibration
from tests.fakes.outcomes import outcome

MODELLED_SIGMA = 0.2
Z90 = 1.6449


def _answer(seconds: float, interval: tuple[float, float], **changes):
    done = outcome(total_s=seconds, **changes)
    estimate = CostEstimate(decode_s=1.0, interval_s=interval)
    first = replace(done.decision.candidates[0], estimate=estimate)
    decision = replace(done.decision, candidates=(first, *done.decision.candidates[1:]))
    return replace(done, decision=decision)


def _interval(calibration: IntervalCalibration) -> tuple[float, float]:
    below, above = calibration.reach("tiny")
    sigma = Z90 * MODELLED_SIGMA
    return math.exp(-below * sigma), math.exp(above * sigma)


@pytest.mark.parametrize("shift", [0.0, 0.3, -0.3])
@pytest.mark.parametrize("spread", [0.1, 0.2, 0.5])
def test_nine_of_ten_answers_are_inside_whatever_the_model_thought(spread, shift):
    shares = []
    for seed in range(10):
        rng, calibration, inside = random.Random(seed), IntervalCalibration(), 0
        for number in range(400):
            low, high = _interval(calibration)
            seconds = rng.lognormvariate(shift, spread)
            inside += number >= 100 and low <= seconds <= high
            calibration.observe(_answer(seconds, (low, high)))
        shares.append(inside / 300)
    # An end never passes the middle: a forecast off by its whole width keeps a twentieth too many.
    assert 0.87 <= sum(shares) / 10 <= 0.955
    assert min(shares) >= 0.82


def test_only_answers_that_tell_something_are_counted():
    calibration = IntervalCalibration()
    for changes in (
        {"status": Status.UPSTREAM_ERROR},
        {"retried": True},
        {"worker": "a remote model", "decision": outcome().decision},
        {"decision": None},
    ):
        calibration.observe(replace(_answer(100.0, (1.0, 2.0)), **changes))
    calibration.observe(_answer(100.0, (0.0, 0.0)))  # nothing was forecast
    assert calibration.reach("tiny") == IntervalCalibration().reach("tiny")


def test_each_model_has_its_own_and_an_end_never_runs_away():
    calibration = IntervalCalibration()
    for _ in range(500):
        calibration.observe(_answer(100.0, (1.0, 2.0)))
    low, high = calibration.reach("tiny")
    assert 0.2 < low < 1.0 < high <= 6.0 + 1e-9
    assert calibration.reach("another") == IntervalCalibration().reach("another")
