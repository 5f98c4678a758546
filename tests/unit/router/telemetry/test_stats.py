from __future__ import annotations

import math
from random import Random

import pytest

from router.telemetry.stats import (
    EXACT_CELLS,
    EffectTable,
    Level,
    Moments,
    Role,
    Shape,
    context_bucket,
    occupancy_bucket,
)

RNG = Random(7)


def chain(worker: str, text: str):
    """A shared text effect, a worker, and their leaf."""
    return (
        Level(("text", text), 0.5, Role.SHARED),
        Level(("worker", worker), 0.3),
        Level(("leaf", worker, text), 0.1),
    )


def cell(table: EffectTable, worker: str, text: str):
    return table.cell((worker, text), chain(worker, text), 0.0)


@pytest.mark.parametrize(
    ("tokens", "bucket"), [(0, 0), (2048, 0), (2049, 1), (9000, 2), (32769, 3)]
)
def test_context_buckets(tokens, bucket):
    assert context_bucket(tokens) == bucket


@pytest.mark.parametrize(
    ("requests", "bucket"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)]
)
def test_occupancy_buckets(requests, bucket):
    assert occupancy_bucket(requests) == bucket


def test_an_unknown_cell_has_its_prior():
    table = EffectTable()
    guess = table.estimate(table.cell("x", chain("a", "t"), 3.0))
    assert guess.mean == 3.0
    assert guess.contrast == pytest.approx(0.3**2 + 0.1**2)
    assert guess.variance == pytest.approx(0.5**2 + 0.3**2 + 0.1**2)
    assert guess.weight == 0.0


def test_much_data_wins_over_the_prior():
    table = EffectTable()
    target = cell(table, "a", "t")
    for _ in range(400):
        table.add(target, 1.0 + RNG.gauss(0.0, 0.2), 1.0)
    guess = table.estimate(target)
    assert guess.mean == pytest.approx(1.0, abs=0.05)
    assert guess.contrast < 0.001
    assert guess.weight == 400.0


def test_data_of_one_cell_moves_its_relatives_by_less():
    table = EffectTable()
    for _ in range(50):
        table.add(cell(table, "a", "t"), 1.0, 1.0)
    same_worker = table.estimate(cell(table, "a", "other")).mean
    same_text = table.estimate(cell(table, "b", "t")).mean
    stranger = table.estimate(cell(table, "b", "other")).mean
    assert 0.05 < same_worker < same_text < 1.0
    assert stranger == 0.0
    assert table.estimate(cell(table, "a", "other")).contrast < 0.09 + 0.01


def test_additive_effects_are_told_apart_from_unbalanced_data():
    """The fast text was mostly answered by b: that must not make b look fast."""
    table = EffectTable()
    for worker, text, y, count in (
        ("a", "slow", 0.3, 60),
        ("b", "slow", 0.0, 6),
        ("a", "fast", 1.3, 6),
        ("b", "fast", 1.0, 60),
    ):
        for _ in range(count):
            table.add(cell(table, worker, text), y, 1.0)
    table.sweep(20)
    for text in ("slow", "fast"):
        better = table.estimate(cell(table, "a", text)).mean
        assert better - table.estimate(cell(table, "b", text)).mean == pytest.approx(0.3, abs=0.03)


def test_sweeping_reaches_the_same_answer_as_single_steps():
    step, batch = EffectTable(), EffectTable()
    rows = [(RNG.choice("ab"), RNG.choice("tuv"), RNG.gauss(0, 0.2)) for _ in range(200)]
    for worker, text, y in rows:
        step.add(cell(step, worker, text), y, 1.0)
        target = cell(batch, worker, text)
        moments = target.moments.plus(Moments())
        moments.add(y, 1.0)
        batch.put(target, moments)
    step.sweep(200)
    batch.sweep(200)
    for worker in "ab":
        for text in "tuv":
            expected = step.estimate(cell(step, worker, text)).mean
            assert batch.estimate(cell(batch, worker, text)).mean == pytest.approx(
                expected, abs=1e-4
            )


def test_a_crossed_level_adds_its_own_uncertainty():
    table = EffectTable()
    levels = (Level("w", 0.3), Level("family", 0.2, Role.CROSSED))
    guess = table.estimate(table.cell("x", levels, 0.0))
    assert guess.contrast == pytest.approx(0.3**2 + 0.2**2)


def test_time_fades_a_cell_but_never_below_what_is_kept():
    table = EffectTable(Shape(keep=10.0))
    target = cell(table, "a", "t")
    for _ in range(40):
        table.add(target, 1.0, 1.0)
    table.decay(0.5)
    assert target.moments.w == pytest.approx(20.0)
    table.decay(0.1)
    assert target.moments.w == pytest.approx(10.0)
    table.decay(0.1)
    assert target.moments.w == pytest.approx(10.0)
    assert table.estimate(target).mean == pytest.approx(1.0, abs=0.05)


def test_a_halved_speed_is_noticed_within_a_few_answers():
    table, heard = EffectTable(), []
    table.on_change = lambda changed: heard.append((changed.key, changed.moments.w, changed.moved))
    target = cell(table, "a", "t")
    for _ in range(100):
        table.add(target, 1.0 + RNG.gauss(0.0, 0.2), 1.0)
    raised = [table.add(target, 1.0 + math.log(0.5), 1.0) for _ in range(8)]
    assert any(raised[:5])
    key, weight, moved = heard[0]
    assert key == ("a", "t")
    assert weight == pytest.approx(1.0)
    assert math.log(0.5) - 0.2 < moved < -0.3  # answers just before may count as part of it
    assert table.estimate(target).mean == pytest.approx(1.0 + math.log(0.5), abs=0.15)


def test_a_change_of_one_worker_is_not_put_down_to_the_text():
    table = EffectTable()
    for _ in range(60):
        table.add(cell(table, "a", "t"), 1.0, 1.0)
        table.add(cell(table, "a", "other"), 1.0, 1.0)
        table.add(cell(table, "b", "other"), 0.5, 1.0)
    table.sweep(20)
    before = table.estimate(cell(table, "b", "t")).mean
    for _ in range(20):
        table.add(cell(table, "a", "t"), 1.0 + math.log(0.5), 1.0)
    table.sweep(20)
    assert table.estimate(cell(table, "a", "t")).mean == pytest.approx(1.0 + math.log(0.5), abs=0.1)
    assert table.estimate(cell(table, "b", "t")).mean == pytest.approx(before, abs=0.1)


def test_noise_alone_seldom_raises_the_alarm():
    table = EffectTable()
    target = cell(table, "a", "t")
    rng = Random(3)
    alarms = sum(table.add(target, rng.gauss(0.0, 0.2), 1.0) for _ in range(3000))
    assert alarms <= 2


def test_a_full_table_drops_the_lightest_cells():
    table = EffectTable(max_cells=20)
    kept = cell(table, "a", "kept")
    for _ in range(5):
        table.add(kept, 1.0, 1.0)
    for number in range(100):
        cell(table, "b", f"asked-{number}")
    assert table.find(("a", "kept")) is kept
    assert table.find(("b", "asked-0")) is None
    for number in range(100):
        table.add(cell(table, "c", f"t{number}"), 1.0, 1.0)
    assert len(list(table.observed())) <= 20
    assert table.find(("a", "kept")) is kept


def test_export_gives_the_observed_moments():
    table = EffectTable()
    table.add(cell(table, "a", "t"), 2.0, 0.5)
    cell(table, "a", "asked")
    assert table.export() == {("a", "t"): Moments(1.0, 0.5, 1.0, 2.0)}


def test_settling_is_exact_where_sweeping_hardly_moves():
    """A scale that all share, far from its prior, with much known of one worker, little of another.

    The mean of a cell given all data is the prior's plus its covariances with what was seen.
    """

    def filled() -> EffectTable:
        table = EffectTable()
        for worker, text, y, count in (
            ("a", "t", 3.5, 900),
            ("a", "u", 3.3, 900),
            ("b", "t", 3, 1),
        ):
            for _ in range(count):
                table.add(table.cell((worker, text), scaled(worker, text), 0.0), y, 1.0)
        return table

    def scaled(worker: str, text: str):
        return (Level("scale", 1.5, Role.SHARED), *chain(worker, text))

    def unknown(table: EffectTable) -> float:
        return table.estimate(table.cell(("b", "u"), scaled("b", "u"), 0.0)).mean

    settled, swept, long_swept = filled(), filled(), filled()
    settled.settle()
    swept.sweep(5)
    long_swept.sweep(30_000)
    assert unknown(settled) == pytest.approx(unknown(long_swept), abs=1e-3)
    assert abs(unknown(swept) - unknown(settled)) > 0.01
    before = unknown(settled)
    settled.settle()
    assert unknown(settled) == pytest.approx(before, abs=1e-9)


def test_a_table_of_many_cells_is_settled_by_sweeping():
    table, twin = EffectTable(), EffectTable()
    for number in range(EXACT_CELLS + 1):
        for one in (table, twin):
            one.add(cell(one, "a", f"t{number}"), 1.0, 1.0)
    table.settle()
    twin.sweep()
    assert table.estimate(cell(table, "a", "new")) == twin.estimate(cell(twin, "a", "new"))


def test_an_empty_table_settles():
    table = EffectTable()
    table.settle()
    assert table.observed() == []


def test_a_change_heard_of_moves_the_cell_and_ends_its_own_suspicion():
    table = EffectTable()
    target = cell(table, "a", "t")
    for _ in range(50):
        table.add(target, 1.0, 1.0)
    table.add(target, 0.3, 1.0)
    assert target.falling.total > 0.0
    before = table.estimate(target).mean
    table.move(target, -0.7)
    assert table.estimate(target).mean == pytest.approx(before - 0.7)
    assert target.falling.total == 0.0
    table.move(target, -0.7)
    assert table.estimate(target).mean == pytest.approx(before - 0.7)


def test_wide_effects_are_left_to_the_sweep():
    table = EffectTable()
    for number in range(60):
        table.add(cell(table, "a", f"t{number}"), 1.0, 1.0)
    before = table.estimate(cell(table, "a", "new")).mean
    table.sweep(30)
    assert table.estimate(cell(table, "a", "new")).mean > before
