import importlib.util
from pathlib import Path

import pytest

from classifier.classes import WorkloadClass
from classifier.dataset import LabelledRequest
from classifier.estimator import Settings
from classifier.evaluate import cross_validate, evaluate, percentile, report
from classifier.rules import RuleClassifier

CONTRACT = {"n", "accuracy", "macro_f1", "recall", "by_language", "non_ambiguous", "ece"} | {
    "latency_us"
}


def rows(groups=6):
    texts = {
        WorkloadClass.STRUCTURED: "write a function number {}",
        WorkloadClass.PROSE: "tell me a story number {}",
        WorkloadClass.REASONING: "solve the equation {}",
    }
    made = []
    for at in range(groups * 3):
        for answer, text in texts.items():
            body = {"messages": [{"role": "user", "content": text.format(at)}]}
            row = LabelledRequest(
                f"{at}", body, answer, answer, "", f"g{at % groups}", "en", at == 0
            )
            made.append(row)
    return made


def test_scores_a_predictor_in_the_contracts_shape():
    ticks = iter(range(1000))
    evaluation = evaluate(rows(), RuleClassifier(), lambda: float(next(ticks)))
    figures = report(evaluation)
    assert set(figures) >= CONTRACT
    assert figures["n"] == len(rows())
    assert figures["non_ambiguous"]["n"] == len(rows()) - 3
    assert figures["latency_us"] == {"p50": 1e6, "p99": 1e6}
    assert set(figures["recall"]) == {c.value for c in WorkloadClass}


def test_cross_validation_scores_every_row_once_in_order():
    data = rows()
    done = []
    settings = Settings(min_count=1, inner_folds=2)
    evaluation = cross_validate(data, [], settings, lambda at, total: done.append((at, total)))
    assert [row.truth for row in evaluation.rows] == [row.label for row in data]
    assert done == [(at, 5) for at in range(1, 6)]
    assert report(evaluation)["macro_f1"] == 1.0


def test_a_flagged_row_is_scored_by_its_flag():
    row = rows()[0]
    thinking = {**row.body, "reasoning_effort": "high"}
    flagged = LabelledRequest(
        "t", thinking, WorkloadClass.REASONING, row.answer, "", row.group, "en", False
    )
    settings = Settings(min_count=1, inner_folds=0)
    evaluation = cross_validate([*rows(), flagged], [], settings, lambda *_: None)
    assert evaluation.rows[-1].predicted is WorkloadClass.REASONING


def test_percentiles():
    assert percentile([], 0.5) is None
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile(range(100), 0.99) == 99


def test_the_module_itself_needs_no_scikit_learn():
    source = Path(importlib.util.find_spec("classifier.evaluate").origin).read_text()
    top = source.split("def evaluate", 1)[0]
    assert "sklearn" not in top


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_percentile_ends(share):
    assert percentile([1.0], share) == 1.0
