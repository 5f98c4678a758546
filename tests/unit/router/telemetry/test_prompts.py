from __future__ import annotations

import pytest

from router.telemetry.prompts import TOKENS_PER_SECOND, PromptModel


def test_before_measured_usual_vocabularies_are_assumed():
    model = PromptModel()
    assert model.tokens("m", "en", 4000) == pytest.approx(1012.0)
    assert model.tokens("m", "zh", 1000) > model.tokens("m", "ru", 1000)
    assert model.tokens("m", "tlh", 1000) == model.tokens("m", "other", 1000)


def test_the_ratio_is_learned_per_script():
    model = PromptModel()
    for _ in range(40):
        model.observe_tokens("m", "ru", 4000, 4012)
    assert model.tokens("m", "ru", 4000) == pytest.approx(4012.0, rel=0.05)
    assert model.tokens("m", "en", 4000) < 3000


def test_prompt_speed_is_learned_per_worker():
    model = PromptModel()
    assert model.seconds("w", 4000.0) == pytest.approx(4000.0 / TOKENS_PER_SECOND)
    for _ in range(40):
        model.observe_speed("w", 4000, 1000.0)
    assert model.seconds("w", 4000.0) == pytest.approx(1.0, rel=0.05)
    assert model.seconds("other", 4000.0) == pytest.approx(4000.0 / TOKENS_PER_SECOND)
    assert model.seconds("w", 0.0) == 0.0


def test_scraps_teach_nothing():
    model = PromptModel()
    model.observe_speed("w", 3, 1000.0)
    model.observe_speed("w", 3000, 0.0)
    model.observe_tokens("m", "en", 5, 500)
    model.observe_tokens("m", "en", 500, 3)
    assert not list(model.speeds.observed())
    assert not list(model.ratios.observed())
