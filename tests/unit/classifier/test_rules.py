import pytest

from classifier.classes import KINDS, WorkloadClass
from classifier.features import extract
from classifier.rules import CERTAIN, RuleClassifier, settled


def predict(text, **fields):
    body = {"messages": [{"role": "user", "content": text}], **fields}
    return RuleClassifier().predict(extract(body))


@pytest.mark.parametrize(
    ("text", "workload_class"),
    [
        ("Write a Python function that adds two numbers", WorkloadClass.STRUCTURED),
        ("Напиши функцию на Python", WorkloadClass.STRUCTURED),
        ("Tell me a story about a fox", WorkloadClass.PROSE),
        ("Почему небо синее?", WorkloadClass.PROSE),
        ("Solve 3x + 4 = 19", WorkloadClass.REASONING),
        ("Подумай шаг за шагом: кто виноват?", WorkloadClass.REASONING),
    ],
)
def test_plain_requests(text, workload_class):
    answer = predict(text)
    assert answer.workload_class is workload_class
    assert answer.kind in KINDS[workload_class]
    assert sum(answer.probabilities.values()) == pytest.approx(1)


def test_fields_beat_the_text():
    answer = predict("Tell me a story", response_format={"type": "json_object"})
    assert (answer.kind, answer.probabilities["structured"]) == ("json", CERTAIN)


def test_thinking_beats_a_schema():
    answer = predict("x", response_format={"type": "json_object"}, reasoning_effort="high")
    assert answer.workload_class is WorkloadClass.REASONING
    assert answer.thinking


def test_nothing_is_settled_by_a_plain_body():
    assert settled(extract({"messages": [{"role": "user", "content": "hi"}]})) is None


def test_explains_with_the_features_that_scored():
    features = extract({"messages": [{"role": "user", "content": "Translate this"}]})
    top = RuleClassifier().explain(features)[0]
    assert (top.name, top.weights) == ("lead:TRANSLATE", {"prose": 3.0})
