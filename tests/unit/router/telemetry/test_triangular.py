from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.telemetry.triangular import solve

number = st.floats(-10.0, 10.0)


@st.composite
def systems(draw):
    """A positive definite matrix A = B B' + I, whole, and an x."""
    size = draw(st.integers(0, 12))
    b = [[draw(number) for _ in range(size)] for _ in range(size)]
    a = [[sum(p * q for p, q in zip(u, v, strict=True)) + float(u is v) for v in b] for u in b]
    return a, [draw(number) for _ in range(size)]


@given(systems())
def test_the_solution_is_the_x_that_made_the_right_side(system):
    a, x = system
    right = [sum(p * q for p, q in zip(row, x, strict=True)) for row in a]
    found = solve([row[: i + 1] for i, row in enumerate(a)], right)
    assert found == pytest.approx(x, rel=1e-6, abs=1e-6)


def test_a_matrix_that_is_not_positive_definite_is_refused():
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        solve([[1.0], [2.0, 1.0]], [1.0, 1.0])
