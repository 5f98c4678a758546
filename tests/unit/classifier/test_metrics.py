import pytest

from classifier.classes import WorkloadClass
from classifier.metrics import (
    Scored,
    accuracy,
    calibration,
    calibration_error,
    confusion,
    drift,
    f1,
    macro_f1,
    recall,
)

S, P, R = WorkloadClass


def scored(truth, predicted, confidence=0.8):
    rest = (1 - confidence) / 2
    probabilities = {c.value: confidence if c is predicted else rest for c in WorkloadClass}
    return Scored(truth, probabilities, "en", "g", False)


ROWS = [scored(S, S), scored(S, P), scored(P, P), scored(P, P), scored(R, S)]


def test_counts_by_hand():
    assert accuracy(ROWS) == 0.6
    assert confusion(ROWS)["structured", "prose"] == 1
    assert recall(ROWS) == {"structured": 0.5, "prose": 1.0, "reasoning": 0.0}
    assert f1(ROWS, P) == pytest.approx(0.8)
    assert macro_f1(ROWS) == pytest.approx((0.5 + 0.8 + 0.0) / 3)


def test_classes_that_never_occur_do_not_count():
    assert macro_f1([scored(P, P)]) == 1.0


def test_calibration_error_is_the_gap():
    assert calibration_error(ROWS) == pytest.approx(0.2)
    assert [part.n for part in calibration(ROWS)] == [5]
    assert calibration_error([scored(S, S, 1.0)]) == 0


def test_no_rows():
    assert accuracy([]) == macro_f1([]) == calibration_error([]) == 0


def test_drift_is_zero_without_change_and_grows_with_it():
    even = {"structured": 0.4, "prose": 0.4, "reasoning": 0.2}
    assert drift(even, even) == 0
    assert drift(even, {"prose": 1.0}) > 0.2
