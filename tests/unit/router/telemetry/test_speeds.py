from __future__ import annotations

import math
from random import Random

import pytest

from router.telemetry import priors
from router.telemetry.levels import Arm, Text
from router.telemetry.speeds import SpeedModel
from workers.timings import Timings

PLAIN = Arm("m", "key-plain", "ar")
MTP = Arm("m", "key-mtp", "mtp-n3")
PROSE, CODE = Text("prose", "essay"), Text("structured", "code")


def answer(speed: float, length: float | None = None, tokens: int = 201) -> Timings:
    """An answer at that speed; `length` is its mean accepted length, None: drafts unreported."""
    accepted = None if length is None else round((tokens - 1) * (1 - 1 / length))
    return Timings(
        predicted_n=tokens,
        predicted_ms=1000.0 * (tokens - 1) / speed,
        draft_n=None if accepted is None else 2 * accepted,
        draft_n_accepted=accepted,
    )


def speed(model: SpeedModel, arm: Arm, text: Text, occupancy: int = 0) -> float:
    return math.exp(model.predict(arm, text, occupancy).ln_v)


def test_without_drafts_reported_the_direct_table_serves():
    model = SpeedModel()
    for _ in range(50):
        model.observe(MTP, PROSE, 0, answer(44.0))
    assert speed(model, MTP, PROSE) == pytest.approx(44.0, rel=0.03)
    assert not list(model.tables["l"].observed())


def test_with_drafts_reported_length_and_step_cost_are_learned_apart():
    model = SpeedModel()
    for _ in range(60):
        model.observe(MTP, PROSE, 0, answer(40.0, length=2.0))
    length = model.tables["l"].estimate(model.length_cell(MTP, PROSE)).mean
    step = model.tables["c"].estimate(model.step_cell(MTP, PROSE, 0)).mean
    assert math.exp(length) == pytest.approx(2.0, rel=0.05)
    assert math.exp(step) == pytest.approx(2.0 / 40.0, rel=0.06)
    assert speed(model, MTP, PROSE) == pytest.approx(40.0, rel=0.05)


def test_one_load_of_ar_teaches_every_class():
    model = SpeedModel()
    for _ in range(40):
        model.observe(MTP, PROSE, 0, answer(40.0, length=2.0))
        model.observe(PLAIN, PROSE, 0, answer(20.0, tokens=201))
        model.observe(PLAIN, PROSE, 2, answer(8.0))
    assert speed(model, PLAIN, CODE, 2) == pytest.approx(8.0, rel=0.15)


def test_what_ar_told_before_the_first_draft_counts_after_it():
    model = SpeedModel()
    for _ in range(40):
        model.observe(PLAIN, PROSE, 0, answer(90.0))
    model.observe(MTP, PROSE, 0, answer(150.0, length=2.0))
    assert speed(model, PLAIN, PROSE) == pytest.approx(90.0, rel=0.06)


def test_what_is_supposed_of_a_step_does_not_depend_on_who_asked_first():
    speeds = []
    for texts in ((PROSE, CODE), (CODE, PROSE)):
        model = SpeedModel()
        model.factor("m")
        speeds.append({text: speed(model, MTP, text, 1) for text in texts})
    assert speeds[0] == pytest.approx(speeds[1])
    assert speeds[0][CODE] > speeds[0][PROSE]


def test_a_change_of_a_factor_is_counted_once():
    """Step cost and residual both see it; taken in by both the speed would be a quarter."""
    model = SpeedModel()
    for _ in range(60):
        model.observe(MTP, PROSE, 0, answer(40.0, length=2.0))
    changed = [model.observe(MTP, PROSE, 0, answer(13.0, length=2.0)) for _ in range(8)]
    assert any(changed)
    assert speed(model, MTP, PROSE) == pytest.approx(13.0, rel=0.1)


def test_a_text_of_long_drafts_is_faster_at_every_load_of_its_worker():
    model = SpeedModel()
    for _ in range(40):
        model.observe(MTP, PROSE, 0, answer(40.0, length=2.0))
        model.observe(MTP, CODE, 0, answer(60.0, length=3.0))
        model.observe(MTP, PROSE, 2, answer(16.0, length=2.0))
    assert speed(model, MTP, CODE, 2) == pytest.approx(24.0, rel=0.15)


@pytest.mark.parametrize(
    "timings",
    [Timings(), answer(40.0, tokens=10), Timings(predicted_n=100), Timings(predicted_n=1)],
)
def test_what_says_nothing_about_speed_teaches_nothing(timings):
    model = SpeedModel()
    assert model.observe(MTP, PROSE, 0, timings) is False
    assert not list(model.measured())


def test_long_answers_weigh_more_than_short_ones():
    model = SpeedModel()
    model.observe(MTP, PROSE, 0, answer(40.0, tokens=20))
    model.observe(MTP, CODE, 0, answer(40.0, tokens=2000))
    weights = {text: moments.w for _, text, _, moments in model.measured()}
    assert 0.5 < weights[PROSE] < weights[CODE] < 1.0


def test_a_drop_of_half_is_told():
    model, rng = SpeedModel(), Random(5)
    for _ in range(60):
        model.observe(MTP, PROSE, 0, answer(40.0 * math.exp(rng.gauss(0, 0.1))))
    assert any(model.observe(MTP, PROSE, 0, answer(20.0)) for _ in range(6))


@pytest.mark.interpreted
def test_forecasts_are_remembered_until_something_is_learned():
    model = SpeedModel()
    number = model.number(PROSE)
    before = model.forecasts(MTP, model.version).get(PROSE, number, 0)
    assert model.forecasts(tuple(MTP), model.version).get(PROSE, number, 0) is before
    model.observe(MTP, PROSE, 0, answer(90.0))
    forecasts = model.forecasts(MTP, model.version)
    assert forecasts.rough(PROSE, number, 0) is before
    assert forecasts.get(PROSE, number, 0)[0] < before[0]
    model.observe(MTP, PROSE, 0, answer(90.0, length=2.0))
    factored = model.forecasts(MTP, model.version).get(PROSE, number, 0)
    assert math.log(1 / factored[0]) == pytest.approx(model.predict(MTP, PROSE, 0).ln_v)


def test_numbers_of_texts_are_few_and_stable():
    model = SpeedModel()
    assert model.number(PROSE) == model.number(Text("prose", "essay")) != model.number(CODE)
    for index in range(5000):
        model.number(Text("prose", str(index)))
    assert model.number(PROSE) < 5000


def test_what_a_load_costs_is_believed_of_the_next_higher_one():
    model, before = SpeedModel(), SpeedModel()
    for _ in range(40):
        model.learn(MTP, PROSE, 0, math.log(40.0), 1.0)
        model.learn(MTP, PROSE, 3, math.log(10.0), 1.0)
    next_higher = 10.0 * priors.KEPT_BESIDE_AS_MANY
    assert speed(model, MTP, PROSE, 4) == pytest.approx(next_higher, rel=0.1)
    assert speed(model, MTP, PROSE, 4) < 0.6 * speed(before, MTP, PROSE, 4)


def test_a_batch_is_not_free_before_it_is_measured():
    model = SpeedModel()
    for _ in range(40):
        model.learn(MTP, PROSE, 0, math.log(40.0), 1.0)
    loads = [speed(model, PLAIN, PROSE, load) for load in range(4)]
    assert loads == sorted(loads, reverse=True)
    assert loads[1] < 0.95 * loads[0]


def test_ar_is_not_thought_slower_because_drafts_are_accepted_as_usual():
    direct, factored = SpeedModel(), SpeedModel()
    for _ in range(10):
        direct.observe(MTP, PROSE, 0, answer(60.0))
        factored.observe(MTP, PROSE, 0, answer(60.0, length=2.6))
    assert speed(factored, PLAIN, PROSE) == pytest.approx(speed(direct, PLAIN, PROSE), rel=0.1)


def test_neighbouring_draft_lengths_teach_each_other_more_than_distant_ones():
    arms = {n: Arm("m", f"key-{n}", f"mtp-n{n}") for n in (3, 4, 5, 7)}
    model = SpeedModel()
    for _ in range(40):
        model.learn(arms[3], PROSE, 0, math.log(40.0), 1.0)
        model.learn(arms[7], PROSE, 0, math.log(20.0), 1.0)
    known = {n: speed(model, arm, PROSE) for n, arm in arms.items()}
    assert known[3] > known[4] > known[5] > known[7]


def test_an_accepted_length_is_compared_with_the_usual_one():
    model = SpeedModel()
    assert model.accepted(MTP, PROSE, answer(40.0, length=2.0)) is None
    for _ in range(40):
        model.observe(MTP, PROSE, 0, answer(40.0, length=2.0))
    ratio = model.accepted(MTP, PROSE, answer(55.0, length=3.0))
    assert ratio == pytest.approx(1.5, rel=0.05)
    assert model.accepted(PLAIN, PROSE, answer(20.0)) is None
    assert model.accepted(MTP, PROSE, answer(55.0, length=3.0, tokens=9)) is None


@pytest.mark.interpreted
def test_a_sibling_is_the_same_text_of_another_class_also_when_all_numbers_are_given_anew(
    monkeypatch,
):
    monkeypatch.setattr("router.telemetry.speeds._MAX_TEXTS", 3)
    model = SpeedModel()
    texts = [Text("prose", "essay", language=f"l{number}") for number in range(5)]
    for text in texts[:3]:
        number = model.number(text)
    model.sibling(texts[2], number, "structured")  # the fourth text: numbers begin again
    for text in texts[3:]:
        number = model.number(text)
    assert number == 2  # once more
    found, _ = model.sibling(texts[4], number, "structured")
    assert found == Text("structured", "", language="l4")


@pytest.mark.parametrize("ln_v", [math.nan, -math.inf, -1e300, -800.0])
def test_a_forecast_of_a_senseless_speed_is_a_finite_and_very_slow_one(ln_v):
    model = SpeedModel()
    model.direct_cell(PLAIN, PROSE, 0).offset = ln_v
    forecast = model.forecasts(PLAIN, model.version)
    assert 1e15 < forecast.get(PROSE, model.number(PROSE), 0)[0] < math.inf
