import pytest

from classifier.classes import CLASS_OF_KIND
from classifier.features import extract
from classifier.lengths import MEDIAN_TOKENS, THINKING_TOKENS, expected_tokens


def features(text):
    return extract({"messages": [{"role": "user", "content": text}]})


@pytest.mark.parametrize("kind", sorted(CLASS_OF_KIND))
def test_every_kind_has_a_median_inside_its_interval(kind):
    median, (low, high) = expected_tokens(features("hello there"), kind, thinking=False)
    assert 0 < low < median < high
    assert kind in MEDIAN_TOKENS


def test_copying_kinds_are_as_long_as_what_they_copy():
    short, _ = expected_tokens(features("x" * 400), "translation", thinking=False)
    long, _ = expected_tokens(features("x" * 4000), "translation", thinking=False)
    assert (short, long) == (100, 1000)


def test_a_named_length_is_believed():
    english, _ = expected_tokens(features("Write 1,000 words on Rome"), "essay", thinking=False)
    russian, _ = expected_tokens(features("Напиши 200 слов о Риме"), "essay", thinking=False)
    assert (english, russian) == pytest.approx((1350, 440))


def test_brevity_detail_and_thinking_move_the_median():
    plain, _ = expected_tokens(features("why is that"), "qa", thinking=False)
    brief, _ = expected_tokens(features("briefly, why is that"), "qa", thinking=False)
    detailed, _ = expected_tokens(features("in detail, why is that"), "qa", thinking=False)
    thought, _ = expected_tokens(features("why is that"), "qa", thinking=True)
    assert brief < plain < detailed
    assert thought == plain + THINKING_TOKENS
