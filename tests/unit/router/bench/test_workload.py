"""The prompts cover every class, kind and both languages."""

from __future__ import annotations

import random
from collections import Counter

from classifier.classes import CLASS_OF_KIND
from router.bench.workload import PROMPTS, workload


def test_kinds_belong_to_their_class_and_both_languages_occur():
    for prompt in PROMPTS:
        assert CLASS_OF_KIND[prompt.kind] == prompt.workload_class, prompt
        assert prompt.text == prompt.text.strip()
    assert {(p.workload_class, p.language) for p in PROMPTS} == {
        (c, lang) for c in ("structured", "prose", "reasoning") for lang in ("en", "ru")
    }


def test_a_workload_has_as_many_of_each_class():
    chosen = workload(random.Random(0), 5)
    assert Counter(p.workload_class for p in chosen) == {
        "structured": 5,
        "prose": 5,
        "reasoning": 5,
    }
    assert chosen != workload(random.Random(1), 5)
    assert chosen == workload(random.Random(0), 5)


def test_thinking_is_asked_for_by_reasoning_only():
    for prompt in PROMPTS:
        body = prompt.body("m", max_tokens=5, seed=1)
        wanted = body["chat_template_kwargs"]["enable_thinking"]
        assert wanted is (prompt.workload_class == "reasoning")
        assert (body["temperature"] == 0.0) is (prompt.workload_class == "structured")
