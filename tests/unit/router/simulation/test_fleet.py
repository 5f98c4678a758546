"""Whole fleets: everybody is answered, troubles are survived, and routing is worth it."""

from __future__ import annotations

from dataclasses import replace

from router.policy import PolicySettings, build_policy
from router.simulation.fleet import FleetRun
from router.simulation.fleet_plan import FleetPlan, Happening, ModeCurve, SimWorker, Sizes, Traffic
from router.simulation.fleet_report import fleet_as_dict, plot_fleet, simulate_fleet

LOADED = {1: 1.0, 2: 0.45, 4: 0.3}
MODES = {
    "ar": ModeCurve({"structured": 20.0, "prose": 20.0}, {1: 1.0, 2: 0.9, 4: 0.75}),
    "mtp-n3": ModeCurve(
        {"structured": 28.0, "prose": 34.0}, LOADED, {"structured": 2.4, "prose": 2.6}
    ),
    "dflash2-margin": ModeCurve(
        {"structured": 60.0, "prose": 18.0}, LOADED, {"structured": 4.0, "prose": 2.0}
    ),
}
WORKERS = tuple(SimWorker(mode, mode) for mode in MODES)
ANSWER = {"structured": Sizes(200.0, 0.6), "prose": Sizes(250.0, 0.6)}
TRAFFIC = Traffic(0.04, {"structured": 1.0, "prose": 1.0}, ANSWER)
PLAN = FleetPlan(MODES, WORKERS, TRAFFIC, requests=900, seed=3)


def _learned(plan: FleetPlan) -> FleetRun:
    return FleetRun(plan, build_policy("learned", PolicySettings(seed=1))).run()


def test_the_learned_policy_beats_every_single_mode_and_the_controls():
    results = {r.name: r for r in simulate_fleet(PLAN)}
    ours = results["learned"].mean_s
    assert ours < min(r.mean_s for n, r in results.items() if n not in ("learned", "oracle"))
    assert results["oracle"].mean_s > 0.75 * ours
    assert results["learned"].shares["structured"]["dflash2-margin"] > 0.5
    found = fleet_as_dict(PLAN, list(results.values()))
    assert found["routed_over_best_single"] < 1.0
    assert [row["name"] for row in found["results"]][:2] == ["oracle", "learned"]


def test_a_run_is_repeatable():
    assert _learned(PLAN).answers == _learned(PLAN).answers


def test_a_crash_loses_no_request():
    crashes = tuple(Happening(at, worker=w, crash=60.0) for w in MODES for at in (300.0, 900.0))
    busy = replace(PLAN, traffic=replace(TRAFFIC, sessions_per_s=0.2), happenings=crashes)
    run = _learned(busy)
    assert len(run.answers) == busy.requests
    assert run.retries > 0


def test_a_mode_that_becomes_slow_is_left():
    slow = Happening(4000.0, mode="dflash2-margin", workload_class="structured", speed=0.2)
    rows = _learned(replace(PLAN, happenings=(slow,))).answers
    before = [row.mode for row in rows if row.workload_class == "structured" and row.at < 4000.0]
    after = [row.mode for row in rows if row.workload_class == "structured" and row.at > 5500.0]
    assert before.count("dflash2-margin") > 0.5 * len(before)
    assert after.count("dflash2-margin") < 0.25 * len(after)


def test_of_an_exclusive_group_only_the_resident_serves():
    grouped = tuple(replace(worker, group="gpu") for worker in WORKERS)
    swap = Happening(3000.0, worker="dflash2-margin", load=30.0)
    rows = _learned(replace(PLAN, workers=grouped, happenings=(swap,))).answers
    assert len(rows) == PLAN.requests
    assert {row.mode for row in rows if row.at < 3000.0} == {"ar"}
    assert {row.mode for row in rows[-100:]} == {"dflash2-margin"}


def test_the_plot_is_a_png(tmp_path):
    few = replace(PLAN, requests=60)
    plot_fleet(list(simulate_fleet(few, ("learned",))), tmp_path / "fleet.png")
    assert (tmp_path / "fleet.png").read_bytes().startswith(b"\x89PNG")
