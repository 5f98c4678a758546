"""Whatever a client sends, the classifier answers; whatever is recorded, memory stays sound."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifier import (
    KINDS,
    Memory,
    Remembered,
    RuleClassifier,
    WorkloadClass,
    blend,
    extract,
    load,
)
from classifier.classes import CLASS_OF_KIND
from classifier.produced import label_output

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool", "x"]) | JSON
MESSAGES = st.lists(st.fixed_dictionaries({"role": ROLES, "content": JSON}) | JSON, max_size=5)
FIELDS = [
    "tools",
    "tool_choice",
    "response_format",
    "grammar",
    "json_schema",
    "chat_template_kwargs",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "thinking_budget",
    "prediction",
    "max_tokens",
    "prompt",
    "input",
    "system",
    "instructions",
    "text",
    "stop",
]
BODIES = st.fixed_dictionaries(
    {}, optional={"messages": MESSAGES | JSON} | dict.fromkeys(FIELDS, JSON)
)


@pytest.fixture(scope="module")
def predictors():
    return load(), RuleClassifier()


@settings(max_examples=300, deadline=None)
@given(body=BODIES, thinking=st.booleans())
def test_any_body_is_classified(predictors, body, thinking):
    features = extract(body, default_thinking=thinking)
    for predictor in predictors:
        answer = predictor.predict(features)
        assert sum(answer.probabilities.values()) == pytest.approx(1)
        assert answer.kind in KINDS[answer.workload_class]
        low, high = answer.output_tokens_interval
        assert 0 < low < answer.expected_output_tokens < high < math.inf
        assert isinstance(predictor.explain(features), tuple)


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=2000), reasoning=st.text(max_size=200), cut=st.booleans())
def test_any_answer_is_labelled(text, reasoning, cut):
    label = label_output(text, reasoning=reasoning, truncated=cut)
    assert CLASS_OF_KIND[label.kind] is label.workload_class
    assert 0 <= label.reasoning_share <= 1


@settings(max_examples=100, deadline=None)
@given(
    events=st.lists(
        st.tuples(
            st.sampled_from("abcdef"),
            st.sampled_from(sorted(CLASS_OF_KIND)),
            st.floats(0, 1e6),
            st.none() | st.floats(1, 8),
        ),
        max_size=40,
    )
)
def test_memory_stays_bounded_and_blends_to_probabilities(events):
    memory = Memory(max_entries=4)
    for key, kind, now, length in events:
        memory.record(Remembered((key,), kind, now, length))
    assert len(memory) <= 4
    body = {"messages": [{"role": "user", "content": "tell me more"}]}
    said = load().predict(extract(body))
    for key in "abcdef":
        answer = blend(said, memory.evidence(key, 1e6))
        assert sum(answer.probabilities.values()) == pytest.approx(1)
        assert WorkloadClass(answer.workload_class).value == max(
            answer.probabilities, key=answer.probabilities.__getitem__
        )
