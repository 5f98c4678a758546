"""Time lines with gaps, the mix of classes, drift."""

from __future__ import annotations

import pytest

from router.dashboard.figures import Snapshot
from router.dashboard.trends import class_figures, drift, lines, sources, versions
from tests.fakes.outcomes import outcome
from tests.fakes.snapshots import NOW, entry, full, slices_of
from workers.timings import Timings


def test_a_line_per_mode_with_gaps_where_nothing_ran() -> None:
    done = [
        outcome(mode="ar", at=NOW - 30, tokens_per_second=40.0),
        outcome(mode="ar", at=NOW - 190, tokens_per_second=40.0),
        outcome(mode="mtp-n3", at=NOW - 100),
    ]
    plain, mtp = lines(Snapshot(at=NOW, slices=slices_of(*done)), "tiny", "prose", "speed", 600)
    assert (plain.name, mtp.name) == ("ar", "mtp-n3")
    values = [value for _, value in plain.points]
    assert values == [pytest.approx(40.0), None, pytest.approx(40.0)]
    assert plain.last == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("metric", "value"), [("acceptance", 2 / 3), ("length", 2.0), ("requests", 1.0)]
)
def test_metrics_of_a_slice(metric: str, value: float) -> None:
    snapshot = Snapshot(at=NOW, slices=slices_of(outcome(at=NOW - 30)))
    (line,) = lines(snapshot, "tiny", "prose", metric, 600)
    assert line.last == pytest.approx(value, rel=0.02)


def test_a_mode_without_a_value_has_no_line() -> None:
    """Refused requests have no speed, plain decoding accepts no drafts."""
    refused = outcome(worker="", mode="", at=NOW - 30, decision=None, timings=Timings())
    snapshot = Snapshot(at=NOW, slices=slices_of(outcome(mode="ar", at=NOW - 30), refused))
    names = {
        metric: [line.name for line in lines(snapshot, "tiny", "prose", metric, 600)]
        for metric in ("speed", "acceptance", "requests")
    }
    assert names == {"speed": ["ar"], "acceptance": [], "requests": ["ar", "none"]}


def mix(structured: int, prose: int, at: float):
    names = ["structured"] * structured + ["prose"] * prose
    return [outcome(name, at=at) for name in names]


def test_drift_is_told_by_how_much_the_mix_moved() -> None:
    before = mix(70, 30, NOW - 20_000)
    levels = {}
    for name, now in {"none": (70, 30), "much": (20, 80)}.items():
        snapshot = Snapshot(at=NOW, slices=slices_of(*before, *mix(*now, NOW - 100)))
        levels[name] = drift(snapshot).level
    assert levels == {"none": "none", "much": "much"}


@pytest.mark.parametrize(
    ("before", "now", "level"),
    [(60, 10, "few_hour"), (0, 181, "few_before"), (10, 60, "few_before"), (9, 9, "few_hour")],
)
def test_few_requests_do_not_tell_drift_and_where_they_lack_is_said(
    before: int, now: int, level: str
) -> None:
    done = [*mix(0, before, NOW - 20_000), *mix(0, now, NOW - 100)]
    found = drift(Snapshot(at=NOW, slices=slices_of(*done)))
    assert (found.level, found.psi) == (level, None)
    assert (found.requests_before, found.requests_hour) == (before, now)


def test_class_figures_and_sources() -> None:
    done = [outcome("prose", at=NOW - 30, confidence=0.95), outcome("structured", at=NOW - 7000)]
    snapshot = Snapshot(at=NOW, slices=slices_of(*done))
    by_class = {row.workload_class: row for row in class_figures(snapshot)}
    assert by_class["prose"].share_day == 0.5
    assert by_class["prose"].share_hour == 1.0
    assert by_class["prose"].confidence == pytest.approx(0.95)
    assert by_class["prose"].histogram[9] == 1
    assert by_class["reasoning"].confidence is None
    assert sources(snapshot) == {"rules": 2}


def test_versions_newest_first() -> None:
    old = entry(1, outcome(at=5.0))
    old.row["request"]["classifier"] = "model-0"
    found = versions(full(decisions=(entry(2, outcome(at=9.0)), old)))
    assert found == [("rules-1", 1.0, 9.0), ("model-0", 1.0, 5.0)]
