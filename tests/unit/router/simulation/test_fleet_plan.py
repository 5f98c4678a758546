"""The fleet file: what it says is what runs, and a mistake is named."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from router.simulation.fleet_plan import BadFleet, ModeCurve, parse_fleet, read_fleet

EXAMPLE = Path(__file__).parents[4] / "deploy" / "simulation" / "fleet.yaml"

PLAN: dict[str, Any] = {
    "requests": 50,
    "modes": {"ar": {"speed": {"prose": 10.0}, "occupancy": {1: 1.0, 4: 0.4}}},
    "workers": [{"name": "w", "mode": "ar"}],
    "traffic": {
        "sessions_per_s": 1.0,
        "classes": {"prose": 1.0},
        "answer": {"prose": {"median": 50}},
    },
    "happenings": [{"at": 5, "mode": "ar", "class": "prose", "speed": 0.5}],
}


def test_the_example_is_valid():
    plan = read_fleet(EXAMPLE)
    assert [worker.name for worker in plan.workers] == ["plain", "prose", "code"]
    assert plan.modes["ar"].share(4) == 0.77


def test_a_curve_is_straight_between_its_points_and_keeps_its_total_beyond():
    curve = ModeCurve({"prose": 10.0}, {1: 1.0, 4: 0.4})
    assert curve.share(1) == 1.0
    assert curve.share(2) == pytest.approx(0.8)
    assert curve.share(8) * 8 == pytest.approx(curve.share(4) * 4)


def test_a_happening_names_its_class():
    assert parse_fleet(PLAN).happenings[0].workload_class == "prose"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("workers", 0, "mode"), "mtp", "no mode 'mtp'"),
        (("workers", 0, "slot"), 4, r"workers\.0\.slot: unknown key"),
        (("workers", 0, "slots"), 0, r"workers\.0\.slots: .* greater than or equal to 1"),
        (("workers",), [], "at least 1 item"),
        (("traffic", "sessions_per_s"), 0, r"traffic\.sessions_per_s: .* greater than 0"),
        (("traffic", "sessions_per_s"), float("nan"), "finite"),
        (("traffic", "sessions_per_s"), 1e308, "less than or equal"),
        (("traffic", "classes"), {"prose": 0}, "no class has a share"),
        (("traffic", "answer"), {}, "nothing for class 'prose'"),
        (("traffic", "answer", "prose", "median"), 1e30, "less than or equal"),
        (("modes", "ar", "speed"), {"code": 1.0}, "nothing for class 'prose'"),
        (("modes", "ar", "speed"), {"prose": 0.0}, "greater than 0"),
        (("modes", "ar", "occupancy"), {1: -1.0}, "greater than 0"),
        (("modes", "ar", "occupancy"), [1], "modes.ar.occupancy: "),
        (("modes", "ar"), 3, r"modes\.ar: "),
        (("requests",), "many", "requests: "),
    ],
)
def test_mistakes_are_named(path, value, said):
    data = copy.deepcopy(PLAN)
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(BadFleet, match=said):
        parse_fleet(data)


def test_a_file_that_is_no_yaml_is_refused(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text("workers: [", encoding="utf-8")
    with pytest.raises(BadFleet, match=r"fleet\.yaml"):
        read_fleet(file)
