"""The mean load over a time is what the integral grew by."""

from __future__ import annotations

import pytest

from router.fleet.load import Load


def test_the_area_is_the_count_times_seconds():
    load = Load()
    load.set(2, 10.0)
    before = load.area(12.0)
    load.set(3, 14.0)
    load.set(0, 15.0)
    assert (load.area(20.0) - before) / 8.0 == pytest.approx((2 * 2.0 + 3 * 1.0) / 8.0)
    assert load.count == 0
