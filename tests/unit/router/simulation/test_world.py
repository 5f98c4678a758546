from __future__ import annotations

import pytest

from router.policy import LearnedPolicy, PolicySettings
from router.simulation.world import MODEL, Request, World
from router.telemetry import Knowledge
from router.telemetry.levels import Arm, Text

MODES = {"plain": "ar", "prose": "mtp-n3"}
SPEEDS = {"plain": 20.0, "prose": 40.0}


def world(**changes) -> tuple[World, Knowledge]:
    known = Knowledge()
    return World(MODES, LearnedPolicy(PolicySettings(), known), **changes), known


def test_the_policy_learns_the_truth_of_the_world():
    made, known = world()
    served = [made.serve(Request("essay", 300, 0.0, 1), SPEEDS) for _ in range(60)]
    assert served.count("prose") > 40
    speed = known.speeds.predict(Arm(MODEL, "prose", "mtp-n3"), Text("essay"), 0)
    assert speed.ln_v == pytest.approx(3.69, abs=0.1)


def test_draft_counts_are_reported_only_where_lengths_are_given():
    made, known = world()
    made.serve(Request("essay", 300, 0.0, 1), SPEEDS)
    assert not list(known.tables["l"].observed())
    for _ in range(30):
        made.serve(Request("essay", 300, 0.0, 1), SPEEDS, {"plain": 1.0, "prose": 2.5})
    lengths = [m.wy / m.w for m in known.tables["l"].export().values()]
    assert lengths == [pytest.approx(0.916, abs=0.02)]


def test_prompts_are_evaluated_at_the_stated_speed():
    made, known = world(prompt_speed=1000.0)
    request = Request("essay", 300, 0.0, 1, 2000.0, held={"plain": 0.0, "prose": 0.0})
    for _ in range(40):
        arm = made.serve(request, SPEEDS)
    assert known.prompts.seconds(arm, 2000.0) == pytest.approx(2.0, rel=0.1)
