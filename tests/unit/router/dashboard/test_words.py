"""Texts in both languages, numbers and times."""

from __future__ import annotations

from datetime import UTC
from string import Formatter

import pytest

from router.dashboard import english, russian
from router.dashboard.words import DASH, Words, language_of, zone_of
from router.telemetry.speeds import MIN_TOKENS
from router.telemetry.speedups import MIN_ANSWERS


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_have_the_same_texts_with_the_same_figures() -> None:
    assert english.TEXTS.keys() == russian.TEXTS.keys()
    for key, text in english.TEXTS.items():
        assert fields(text) == fields(russian.TEXTS[key]), key


def test_russian_is_russian() -> None:
    same = {k for k, text in russian.TEXTS.items() if text == english.TEXTS[k]}
    assert same <= {"title", "time_utc", "event_state", "confirm_title"}


@pytest.mark.parametrize("texts", [english.TEXTS, russian.TEXTS])
def test_the_note_on_gains_says_which_answers_count(texts) -> None:
    assert str(MIN_ANSWERS) in texts["gain_note"]
    assert str(MIN_TOKENS) in texts["gain_note"]


@pytest.mark.parametrize(
    ("accept", "language"),
    [("ru-RU,ru;q=0.9,en;q=0.8", "ru"), ("de,en;q=0.5", "en"), ("", "en"), ("xx", "en")],
)
def test_language_of_a_browser(accept: str, language: str) -> None:
    assert language_of(accept) == language


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, DASH),
        (0, "0\u00a0s"),
        (0.0042, "4.2\u00a0ms"),
        (0.25, "250\u00a0ms"),
        (3.14, "3.1\u00a0s"),
        (600, "10.0\u00a0min"),
        (36_000, "10.0\u00a0h"),
        (-36_000, "−10.0\u00a0h"),
    ],
)
def test_durations(seconds, text: str) -> None:
    assert Words("en").duration(seconds) == text


def test_numbers_and_shares() -> None:
    assert Words("en").number(1234567.891, 1) == "1,234,567.9"
    assert Words("ru").number(1234567.891, 1) == "1\u00a0234\u00a0567,9"
    assert Words("ru").percent(0.125, 1) == "12,5\u00a0%"
    assert Words("en").percent(None) == DASH


def test_zones() -> None:
    assert zone_of("utc") is UTC
    assert zone_of("Nowhere/At_All") is UTC
    assert zone_of("../../etc/passwd") is UTC
    assert Words("en", zone_of("Europe/Moscow")).clock(0.0) == "03:00:00"
    assert 'datetime="1970-01-01T00:00:00+00:00"' in Words().moment(0.0)
