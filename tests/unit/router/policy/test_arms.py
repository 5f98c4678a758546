from __future__ import annotations

from dataclasses import replace

import pytest

from router.core import Reason
from router.policy import LearnedPolicy, PolicySettings
from router.policy.arms import with_arms
from router.telemetry import Knowledge
from tests.fakes.outcomes import classification, outcome
from tests.fakes.routing import WALL, question, snapshot
from workers.arms import Arm

ARMS = (Arm("ar", 0), Arm("dflash2-n3", 3))
ONE = snapshot("one", "dflash2", record={"arms": ARMS, "spec_hash": "hash-one"})


def modes(request):
    return [worker.mode for worker in with_arms(request).view.workers]


def test_every_arm_is_a_candidate_of_its_own():
    other = snapshot("other", "ar")
    assert modes(question(ONE, other)) == ["dflash2", "ar", "dflash2-n3", "ar"]
    assert modes(question(other)) == ["ar"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"fixed_draft": True}, 1),
        ({"worker": "one"}, 1),
        ({"worker": "one", "mode": "ar"}, 3),
        ({"mode": "ar"}, 3),
    ],
)
def test_when_the_arm_is_not_ours_to_choose(changes, expected):
    assert len(modes(question(ONE, **changes))) == expected


def test_a_drafter_that_does_not_draft_has_no_arms():
    broken = replace(ONE, record=replace(ONE.record, effective_mode="ar"))
    assert modes(question(broken)) == ["ar"]


def taught(speeds):
    """A policy that has seen each arm of the one worker answer prose and code."""
    made = LearnedPolicy(PolicySettings(baseline_share=0.0, exploration_budget=0.0), Knowledge())
    for number in range(40):
        for (name, mode), speed in speeds.items():
            key = "hash-one" if mode == "dflash2" else f"hash-one~{mode}"
            at = WALL - 100 + number
            done = outcome(
                name, "one", mode, tokens_per_second=speed, at=at, worker_key=key, confidence=1.0
            )
            made.observe(done)
    made.knowledge.settle()
    return made


SPEEDS = {
    ("prose", "dflash2"): 15.0,
    ("prose", "dflash2-n3"): 25.0,
    ("prose", "ar"): 40.0,
    ("structured", "dflash2"): 80.0,
    ("structured", "dflash2-n3"): 60.0,
    ("structured", "ar"): 40.0,
}


@pytest.mark.parametrize(
    ("name", "mode", "overrides"),
    [("prose", "ar", {"speculative.n_max": 0}), ("structured", "dflash2", {})],
)
def test_each_arm_is_learned_and_chosen_for_what_it_does_best(name, mode, overrides):
    asked = question(ONE, classification=classification(name, 1.0))
    decision = taught(SPEEDS).choose(asked)
    assert (decision.worker, decision.mode, decision.reason) == (
        "one",
        mode,
        Reason.PREDICTED_FASTEST,
    )
    assert decision.overrides == overrides
    estimate = decision.estimate()
    assert estimate.decode_tokens_per_second == pytest.approx(SPEEDS[name, mode], rel=0.15)
    assert len({(c.worker, c.mode) for c in decision.candidates}) == 3


def test_a_conversation_may_change_its_arm_at_home():
    held = {"home": "one", "cached_tokens": {"one": 900.0}, "conversation": "c"}
    decision = taught(SPEEDS).choose(question(ONE, prompt_tokens=1000.0, **held))
    assert (decision.worker, decision.mode) == ("one", "ar")


def test_a_required_mode_finds_the_arm():
    decision = taught(SPEEDS).choose(question(ONE, mode="dflash2-n3"))
    assert (decision.mode, decision.overrides) == ("dflash2-n3", {"speculative.n_max": 3})
