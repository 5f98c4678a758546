from __future__ import annotations

import pytest

from router.telemetry.merging import Merger
from router.telemetry.stats import Moments
from router.telemetry.store.base import CellName, Cut, SharedStats

CELL = CellName("v", "[]")
NO_KEEP = {"v": 0.0}


def rows(*weights: float) -> dict[int, dict[CellName, Moments]]:
    """One epoch per weight, the last is the newest."""
    return {number: {CELL: Moments(w, w, w, w)} for number, w in enumerate(weights) if w}


def weight(shared: SharedStats, fade: float = 0.5, keep: float = 0.0) -> float:
    return Merger().merge(shared, fade, {"v": keep})[CELL].w


def test_older_epochs_fade_by_the_traffic_that_came_after():
    assert weight(SharedStats(rows(8, 4, 2))) == 2 + 4 / 2 + 8 / 4
    assert weight(SharedStats(rows(8, 0, 0, 2))) == 2 + 8 / 2


def test_a_quiet_weekend_forgets_nothing():
    weekend = {0: rows(8)[0], 600: {CellName("v", "[1]"): Moments(1, 1, 1, 1)}}
    assert Merger().merge(SharedStats(weekend), 0.5, NO_KEEP)[CELL].w == 4.0


def test_days_come_after_every_epoch():
    shared = SharedStats(rows(0, 0, 2), days={0: {CELL: Moments(4096, 4096, 1, 1)}})
    assert weight(shared) == pytest.approx(2 + 4096 / 2**12)


def test_what_fades_is_given_back_up_to_what_is_kept():
    assert weight(SharedStats(rows(8, 4, 2)), keep=10.0) == pytest.approx(10.0)
    assert weight(SharedStats(rows(8, 4, 2)), keep=100.0) == pytest.approx(14.0)


def test_a_cut_ends_the_past_also_within_its_epoch():
    cut = Cut(1, 0.1, Moments(3, 3, 3, 3))
    shared = SharedStats(rows(8, 4, 2), cuts={CELL: cut})
    assert weight(shared, fade=1.0) == pytest.approx(2 + (4 - 3 + 0.3) + 0.8)
    newest = SharedStats(rows(8, 4), cuts={CELL: cut})
    assert weight(newest, fade=1.0) == pytest.approx((4 - 3 + 0.3) + 0.8)


def test_closed_epochs_are_summed_once_and_again_when_one_changes():
    merger, shared = Merger(), SharedStats(rows(8, 2))
    first = merger.merge(shared, 0.5, NO_KEEP)[CELL].w
    shared.epochs[1][CELL] = Moments(5, 5, 5, 5)
    assert merger.merge(shared, 0.5, NO_KEEP)[CELL].w == first + 3
    late = SharedStats({0: {CELL: Moments(10, 10, 10, 10)}, 1: shared.epochs[1]})
    assert merger.merge(late, 0.5, NO_KEEP)[CELL].w == first + 3 + 1


def test_nothing_merges_to_nothing():
    assert Merger().merge(SharedStats(), 0.5, NO_KEEP) == {}
