"""Learned state is sums: the order and the split of observations must not matter."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from router.telemetry.stats import EffectTable, Level, Moments, Role, Shape

observations = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from("xyz"),
        st.floats(-2, 2),
        st.floats(0.1, 1.0),
    ),
    min_size=1,
    max_size=40,
)
CALM = Shape(cusum_limit=1e9)  # change detection looks at the order on purpose


def table_of(rows) -> EffectTable:
    table = EffectTable(CALM)
    for worker, text, y, weight in rows:
        table.add(cell(table, worker, text), y, weight)
    table.sweep(60)
    return table


def cell(table, worker, text):
    levels = (
        Level(("text", text), 0.5, Role.SHARED),
        Level(("worker", worker), 0.3),
        Level(("leaf", worker, text), 0.2),
    )
    return table.cell((worker, text), levels, 0.0)


@settings(max_examples=60)
@given(observations, st.randoms())
def test_the_order_of_observations_does_not_matter(rows, rng):
    shuffled = list(rows)
    rng.shuffle(shuffled)
    one, other = table_of(rows), table_of(shuffled)
    for worker in "ab":
        for text in "xyz":
            first = one.estimate(cell(one, worker, text))
            second = other.estimate(cell(other, worker, text))
            assert abs(first.mean - second.mean) < 1e-3
            assert abs(first.contrast - second.contrast) < 1e-9


@settings(max_examples=60)
@given(observations)
def test_estimates_stay_within_the_data_and_the_prior(rows):
    table = table_of(rows)
    low, high = min(0.0, *(r[2] for r in rows)), max(0.0, *(r[2] for r in rows))
    reach = high - low
    for worker in "ab":
        for text in "xyz":
            guess = table.estimate(cell(table, worker, text))
            assert low - reach - 1e-6 <= guess.mean <= high + reach + 1e-6
            assert 0.0 < guess.contrast <= 0.3**2 + 0.2**2 + 1e-9
            assert guess.contrast <= guess.variance


@given(observations, st.integers(0, 40))
def test_moments_of_parts_add_up_to_the_whole(rows, split):
    whole, left, right = Moments(), Moments(), Moments()
    for index, (_, _, y, weight) in enumerate(rows):
        whole.add(y, weight)
        (left if index < split else right).add(y, weight)
    merged = left.plus(right)
    for field in ("n", "w", "wy", "wyy"):
        assert abs(getattr(merged, field) - getattr(whole, field)) < 1e-9


@given(observations, st.floats(0.0, 1.0))
def test_decay_never_takes_more_than_is_kept(rows, factor):
    table = EffectTable(Shape(keep=2.0, cusum_limit=1e9))
    for worker, text, y, weight in rows:
        table.add(cell(table, worker, text), y, weight)
    before = {key: moments.w for key, moments in table.export().items()}
    table.decay(factor)
    for key, moments in table.export().items():
        assert min(before[key], 2.0) - 1e-9 <= moments.w <= before[key] + 1e-9
