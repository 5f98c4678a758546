"""Figures of the pages, from stated slices and speed-ups."""

from __future__ import annotations

import pytest

from router.core import Status
from router.dashboard.figures import (
    DAY_S,
    Snapshot,
    drill_down,
    in_flight,
    matrix,
    overview,
    saved,
    shares,
)
from tests.fakes.outcomes import outcome
from tests.fakes.snapshots import NOW, full, slices_of, speedup


def test_rates_are_over_what_the_slices_cover() -> None:
    done = [outcome(at=NOW - 30, tokens=101), outcome(at=NOW - 90, tokens=101)]
    figures = overview(Snapshot(at=NOW, slices=slices_of(*done)), 300)
    assert figures.requests == 2
    assert figures.per_second == pytest.approx(2 / 120)  # the older slice began 120 s ago
    assert figures.goodput == pytest.approx(202 / 120)
    assert figures.failed_share == 0


def test_failures_count_and_unfinished_tokens_do_not() -> None:
    done = [outcome(at=NOW - 30), outcome(at=NOW - 30, status=Status.UPSTREAM_ERROR)]
    figures = overview(Snapshot(at=NOW, slices=slices_of(*done)), 300)
    assert figures.failed_share == 0.5
    assert figures.goodput == pytest.approx(101 / 60)


def test_an_empty_window_knows_nothing() -> None:
    figures = overview(Snapshot(at=NOW), 300)
    assert (figures.requests, figures.ttft_p50, figures.failed_share) == (0, None, None)


def test_queues_add_up_over_gateways_and_flights_are_told_whole_by_each() -> None:
    gateways = {
        "a": {"queue": {"m": 2}, "inflight": {"code": 1}},
        "b": {"queue": {"m": 1}, "inflight": {"code": 3}},
    }
    snapshot = full(gateways=gateways)
    assert overview(snapshot, 300).waiting == 3
    assert in_flight(snapshot, "code") == 3


def test_time_saved_is_time_spent_times_what_plain_would_have_added() -> None:
    """100 tokens at 50/s in mtp (1.25 x) and at 80/s in dflash2 (2.0 x), 2 s and 1.25 s."""
    done = [
        outcome("prose", mode="mtp-n3", at=NOW - 30, tokens_per_second=50.0),
        outcome("structured", mode="dflash2-margin", at=NOW - 30, tokens_per_second=80.0),
    ]
    found = saved(full(slices=slices_of(*done)), DAY_S)
    assert found.against_plain == pytest.approx(2.0 * 0.25 + 1.25 * 1.0)
    assert found.low == pytest.approx(2.0 * (1.25 * 0.95 - 1) + 1.25 * (2.0 * 0.95 - 1))
    assert found.covered == 1.0
    # Only mtp-n3 and ar are measured for both classes: 2.0 s + 1.25 * 2 / 1.5 s in mtp-n3.
    assert found.best == "mtp-n3"
    assert found.against_best == pytest.approx(1.25 * 2 / 1.5 - 1.25)


def test_unmeasured_time_is_left_out_and_said() -> None:
    done = [outcome("reasoning", mode="mtp-n3", at=NOW - 30), outcome(mode="ar", at=NOW - 30)]
    found = saved(full(slices=slices_of(*done)), DAY_S)
    assert found.against_plain == 0.0
    assert found.covered == pytest.approx(0.5)
    assert saved(full(slices={}), DAY_S).against_plain is None


def test_matrix_has_every_class_and_mode_and_shares_of_the_class() -> None:
    rows = matrix(full(), "tiny")
    assert [[c.mode for c in row] for row in rows] == [["ar", "dflash2-margin", "mtp-n3"]] * 3
    prose = {c.mode: c for c in rows[1]}
    assert prose["ar"].share == prose["mtp-n3"].share == 0.5
    assert prose["mtp-n3"].mean_length == pytest.approx(100 / 50)
    assert prose["dflash2-margin"].row is None


def refused(name: str = "prose", at: float = NOW - 30):
    """A request that reached no worker."""
    return outcome(name, worker="", mode="", at=at, decision=None, status=Status.SHED)


def test_shares_are_of_what_workers_served() -> None:
    """Refused requests are counted as a mode that no table has a column for."""
    done = [outcome(mode=mode, at=NOW - 30) for mode in ("ar", "mtp-n3", "mtp-n3", "mtp-n3")]
    snapshot = full(slices=slices_of(*done, *[refused()] * 6))
    cells = {c.mode: c.share for c in matrix(snapshot, "tiny")[1]}
    assert (cells["ar"], cells["mtp-n3"]) == (0.25, 0.75)
    assert shares(snapshot, "tiny")["prose"] == {"ar": 0.25, "mtp-n3": 0.75}
    assert shares(full(slices=slices_of(refused())), "tiny")["prose"] == {}


def test_shares_have_modes_that_no_worker_has_any_more() -> None:
    done = [outcome(mode=mode, at=NOW - 30) for mode in ("remote", "ar", "eagle3", "ar")]
    found = shares(full(slices=slices_of(*done)), "tiny")["prose"]
    assert list(found.items()) == [("ar", 0.5), ("eagle3", 0.25), ("remote", 0.25)]


def test_answers_of_a_few_words_show_no_length_where_nothing_else_is_measured() -> None:
    """Their steps are in the slices, but no speed is learned of them: no answers, no figures."""
    short = outcome("reasoning", mode="mtp-n3", at=NOW - 30, tokens=12)
    cells = {c.mode: c for c in matrix(full(slices=slices_of(short)), "tiny")[2]}
    assert cells["mtp-n3"].requests == 1
    assert cells["mtp-n3"].row is cells["mtp-n3"].mean_length is None


def test_a_degraded_workers_mode_keeps_its_column() -> None:
    records = [r for r in full().records if r.name == "code"]
    snapshot = full(records=records, speedups=(speedup("prose", "ar", 1.0),))
    assert snapshot.modes("tiny") == ["ar", "dflash2-margin"]


def test_drill_down_compares_within_the_same_conditions() -> None:
    parts = drill_down(full(), "tiny", "prose", "mtp-n3", "occupancy")
    assert [part.value for part in parts] == ["0", "2"]
    assert parts[0].compared.ratio == pytest.approx(1.25)
    assert parts[1].compared.ratio == pytest.approx(0.8)
    by_context = drill_down(full(), "tiny", "prose", "mtp-n3", "context")
    assert by_context[0].compared.n == 120


def test_drill_down_without_plain_answers_is_not_measured() -> None:
    cells = [c for c in full().cells if c.arm.mode != "ar"]
    (part,) = drill_down(full(cells=cells), "tiny", "prose", "mtp-n3", "language")
    assert part.compared.ratio is None
