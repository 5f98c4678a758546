from __future__ import annotations

import math
from random import Random
from statistics import fmean

import pytest

from router.telemetry.lengths import SIGMA, Length, LengthKey, LengthModel

KEY = LengthKey("m", "prose", "essay", False)
INTERVAL = (100.0, 400.0)


def test_before_anything_is_known_the_classifier_is_believed():
    guess = LengthModel().predict(KEY, 200.0, INTERVAL)
    assert guess.quantile(0.5) == pytest.approx(200.0)
    assert guess.quantile(0.1) == pytest.approx(100.0, rel=0.01)
    assert guess.quantile(0.9) == pytest.approx(400.0, rel=0.01)


@pytest.mark.parametrize("interval", [(0.0, 0.0), (10.0, 10.0), (-1.0, 5.0)])
def test_an_odd_interval_gives_the_usual_spread(interval):
    assert LengthModel().predict(KEY, 200.0, interval).sigma == SIGMA


def test_answers_correct_the_classifier():
    model, rng = LengthModel(), Random(1)
    for _ in range(300):
        model.observe(KEY, 200.0, round(50 * math.exp(rng.gauss(0, 0.4))), cut=False)
    guess = model.predict(KEY, 200.0, INTERVAL)
    assert guess.quantile(0.5) == pytest.approx(50.0, rel=0.1)
    assert guess.sigma == pytest.approx(0.4, rel=0.15)


def test_absurd_lengths_do_not_drown_the_others():
    model = LengthModel()
    for tokens in (*[200] * 60, *[10_000_000] * 3, *[200] * 60):
        model.observe(KEY, 200.0, tokens, cut=False)
    assert model.predict(KEY, 200.0, INTERVAL).expected() < 600.0


def test_a_prompt_seen_before_has_its_own_length():
    model = LengthModel()
    known = KEY._replace(fingerprint="print-1")
    for _ in range(60):
        model.observe(known, 200.0, 20, cut=False)
        model.observe(KEY, 200.0, 400, cut=False)
    model.table.sweep(50)
    assert model.predict(known, 200.0, INTERVAL).quantile(0.5) < 40
    other = KEY._replace(fingerprint="print-2")
    assert model.predict(other, 200.0, INTERVAL).quantile(0.5) > 60


def test_an_answer_that_was_cut_off_does_not_shorten_the_guess():
    model = LengthModel()
    for _ in range(50):
        model.observe(KEY, 200.0, 16, cut=True)
    assert model.predict(KEY, 200.0, INTERVAL).quantile(0.5) >= 199.0
    model.observe(KEY, 200.0, 0, cut=False)
    assert model.predict(KEY, 200.0, INTERVAL).quantile(0.5) >= 199.0


@pytest.mark.parametrize("cap", [None, 50, 200, 1000])
def test_the_expected_tokens_are_the_mean_of_capped_draws(cap):
    rng, length = Random(2), Length(math.log(150.0), 0.7)
    draws = [math.exp(rng.gauss(length.mu, length.sigma)) for _ in range(40_000)]
    mean = fmean(min(draw, cap or math.inf) for draw in draws)
    assert length.expected(cap) == pytest.approx(mean, rel=0.02)


def test_quantiles_are_capped():
    assert Length(math.log(150.0), 0.7).quantile(0.95, 160) == 160.0


def test_the_memo_of_shifts_is_bounded():
    model = LengthModel()
    for number in range(5000):
        model.predict(KEY._replace(fingerprint=str(number)), 200.0, INTERVAL)
    assert len(model._memo) <= 4097
