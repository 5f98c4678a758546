from __future__ import annotations

import pytest

from router.policy import PolicySettings, build_policy
from router.simulation.cells import predicted_loss, run, simulate_profile
from router.simulation.profiles import Profile, ProfileCell
from router.simulation.stage import Stage

MODES = {"ar": "ar", "mtp": "mtp-n3", "dflash": "dflash2-margin"}
FLIPS = Profile(
    "flips",
    (
        ProfileCell("code", 1, {"ar": 20.0, "mtp": 30.0, "dflash": 45.0}),
        ProfileCell("prose", 1, {"ar": 20.0, "mtp": 30.0, "dflash": 18.0}),
    ),
    MODES,
    ("ar", "mtp", "dflash"),
)


def static(worker: str):
    return lambda _seed: build_policy("static", PolicySettings(static_worker=worker))


def test_a_static_policy_is_exactly_its_single_arm():
    result = simulate_profile(FLIPS, 100, 2, static("mtp"))
    assert result.vs_best_single == pytest.approx(1.0)
    assert result.vs_oracle < 0.9
    assert result.exploration_share == 0.0


def test_the_learned_policy_beats_every_single_arm_where_the_best_differs():
    result = simulate_profile(FLIPS, 300, 3)
    assert result.vs_best_single > 1.05
    assert result.vs_oracle > 0.97
    assert result.exploration_share <= 0.02
    assert result.recovery_requests is not None
    assert result.recovery_requests <= 60


def test_a_static_policy_does_not_recover():
    assert simulate_profile(FLIPS, 50, 2, static("dflash")).recovery_requests is None


def test_a_seed_gives_the_same_run():
    runs = [run(FLIPS, 80, 5, build_policy("learned", PolicySettings(seed=5))) for _ in range(2)]
    assert runs[0] == runs[1]


def test_an_arm_absent_from_a_cell_is_not_eligible_there():
    partial = Profile(
        "partial",
        (
            ProfileCell("code", 1, {"ar": 20.0, "mtp": 30.0, "dflash": 90.0}),
            ProfileCell("prose", 1, {"ar": 20.0, "mtp": 30.0}),
        ),
        MODES,
        ("ar", "mtp"),
    )
    stage = Stage(partial, build_policy("round_robin"))
    served = [stage.serve(1, 100, 0.0, partial.cells[1].speeds).worker for _ in range(4)]
    assert set(served) == {"ar", "mtp"}


def test_the_policy_sees_the_cells_name_and_load():
    loaded = Profile("p", (ProfileCell("c4", 4, {"ar": 5.0, "mtp": 4.0}),) * 2, MODES, ("ar",))
    policy = build_policy("learned")
    Stage(loaded, policy).serve(0, 100, 0.0, loaded.cells[0].speeds)
    ((_, text, occupancy, _),) = policy.knowledge.speeds.measured()
    assert (text.workload_class, occupancy) == ("c4", 2)


def test_loss_is_predicted_only_for_exploring():
    stage = Stage(FLIPS, build_policy("learned"))
    decisions = [stage.serve(0, 100, 0.0, FLIPS.cells[0].speeds) for _ in range(60)]
    losses = [predicted_loss(decision) for decision in decisions]
    assert all(seconds > 0 for _, seconds in losses)
    assert {d.reason.value for d, (loss, _) in zip(decisions, losses, strict=True) if loss > 0} == {
        "exploration"
    }
    assert predicted_loss(build_static_decision()) == (0.0, 0.0)


def build_static_decision():
    stage = Stage(FLIPS, build_policy("static", PolicySettings(static_worker="mtp")))
    return stage.serve(0, 100, 0.0, FLIPS.cells[0].speeds)
