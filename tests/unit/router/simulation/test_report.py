from __future__ import annotations

from dataclasses import replace

from router.simulation import report
from router.simulation.cells import ProfileResult
from router.simulation.profiles import Profile, ProfileCell

GOOD = ProfileResult("good", 2, 3, 0.999, 1.02, 5, 0.004)
POOR = ProfileResult("poor", 2, 3, 0.95, 0.97, None, 0.03)
PROFILE = Profile(
    "p",
    (ProfileCell("a", 1, {"x": 10.0, "y": 20.0}), ProfileCell("b", 1, {"x": 20.0, "y": 10.0})),
    {"x": "ar", "y": "mtp-n3"},
    ("x", "y"),
)


def test_the_bar_is_met_or_missed_row_by_row():
    assert all(check.met for check in report.checks([GOOD, GOOD]))
    assert not any(check.met for check in report.checks([POOR]))


def test_the_json_has_the_contracts_fields():
    shown = report.as_dict([GOOD, POOR])
    assert shown["worst_vs_oracle"] == 0.95
    assert shown["median_vs_oracle"] == 0.9745
    assert shown["worst_vs_best_single"] == 0.97
    assert set(shown["profiles"][0]) == {
        "profile",
        "cells",
        "arms",
        "vs_oracle",
        "vs_best_single",
        "recovery_requests",
        "exploration_share",
        "missed",
    }
    assert shown["profiles"][0]["missed"] == []
    assert "worst vs oracle" in shown["profiles"][1]["missed"]
    worst = {row["quantity"]: row["worst"] for row in shown["checks"]}
    assert worst["worst vs oracle"] == "poor"


def test_where_another_arm_wins_a_cell_the_single_arm_must_be_beaten():
    even = replace(GOOD, vs_best_single=0.995)
    assert all(check.met for check in report.checks([even]))
    assert not all(check.met for check in report.checks([replace(even, flips=1.2)]))


def test_only_usable_profiles_are_simulated_and_jobs_change_nothing():
    single = Profile("single", PROFILE.cells[:1], PROFILE.modes, PROFILE.common)
    alone = list(report.simulate_all([PROFILE, single], 40, 2))
    assert [result.profile for result in alone] == ["p"]
    assert list(report.simulate_all([PROFILE, single], 40, 2, jobs=2)) == alone


def test_the_plot_is_a_png(tmp_path):
    path = tmp_path / "plot.png"
    report.plot([GOOD, POOR], path)
    assert path.read_bytes().startswith(b"\x89PNG")
