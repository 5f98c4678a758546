import numpy as np
import pytest

from classifier.classes import WorkloadClass
from classifier.dataset import LabelledRequest
from classifier.estimator import (
    Settings,
    WorkloadEstimator,
    best_temperature,
    examples_of,
    scale_of,
    softmax,
)

TEXTS = {
    "code": "write a function number {}",
    "table": "make a table number {}",
    "story": "tell me a story number {}",
    "qa": "why is that so {}",
    "math": "solve the equation {}",
    "logic": "solve the riddle {}",
}
CLASS = {"code": "structured", "table": "structured", "story": "prose", "qa": "prose"}


def labelled(repeat=8, groups=4):
    made = []
    for at in range(repeat):
        for kind, text in TEXTS.items():
            answer = WorkloadClass(CLASS.get(kind, "reasoning"))
            body = {"messages": [{"role": "user", "content": text.format(at)}]}
            group = f"g{at % groups}"
            made.append(
                LabelledRequest(f"{kind}{at}", body, answer, answer, kind, group, "en", False)
            )
    return made


def test_learns_classes_and_kinds():
    rows = labelled()
    examples = examples_of(rows)
    model = WorkloadEstimator(Settings(min_count=1)).fit(examples)
    guesses = model.predict_proba(examples.features).argmax(axis=1)
    assert [list(WorkloadClass)[at] for at in guesses] == [row.answer for row in rows]
    assert model.kind_weights_[WorkloadClass.STRUCTURED].shape == (len(model.names_), 8)
    assert 0.5 <= model.temperature_ <= 3.0


def test_the_same_data_give_the_same_weights():
    examples = examples_of(labelled())
    one, two = (WorkloadEstimator().fit_classes(examples) for _ in range(2))
    assert np.array_equal(one.class_weights_, two.class_weights_)


def test_groups_can_be_held_back():
    rows = [*labelled(6, groups=1), *labelled(2, groups=1)]
    even = WorkloadEstimator(Settings(group_power=1.0, min_count=1))
    weights = even._row_weights(examples_of(rows))
    assert weights.sum() == pytest.approx(len(rows))


def test_a_temperature_above_one_cools_wrong_certainty():
    scores = np.array([[4.0, 0.0, 0.0]] * 10)
    labels = np.array([0] * 6 + [1] * 4)
    assert best_temperature(scores, labels, np.ones(10)) > 1.5


def test_softmax_rows_sum_to_one():
    assert softmax(np.array([[1000.0, 0.0, -5.0]])).sum() == pytest.approx(1)


def test_words_weigh_less_than_concepts():
    assert scale_of("story", 0.5) == 0.5 < scale_of("c:STORY", 0.5) < scale_of("no:CODE", 0.5)


def test_features_of_one_label_only_do_not_fail():
    examples = examples_of([row for row in labelled() if row.kind == "code"])
    model = WorkloadEstimator(Settings(min_count=1)).fit(examples)
    assert model.predict_proba(examples.features)[0].argmax() == 0
