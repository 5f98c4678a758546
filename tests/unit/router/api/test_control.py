"""Changing the policy while it runs: all or nothing."""

from __future__ import annotations

import pytest

from router.api.control import PolicySwitch
from router.core import BadRequest
from router.policy import PolicySettings
from router.telemetry import Knowledge


def _switch() -> PolicySwitch:
    return PolicySwitch("learned", PolicySettings(), Knowledge())


def test_it_says_what_is_in_use_and_what_there_is():
    told = _switch().describe()
    assert told["policy"] == "learned"
    assert "round_robin" in told["policies"]
    assert told["settings"]["seed"] == 0


def test_a_change_is_taken_over():
    switch = _switch()
    switch.change({"policy": "least_loaded", "settings": {"tie_margin": 1, "seed": 7}})
    told = switch.describe()
    assert switch.name == told["policy"] == "least_loaded"
    assert told["settings"]["tie_margin"] == 1.0
    assert told["settings"]["seed"] == 7
    switch.change(told)  # what it says can be said back
    assert switch.describe() == told


@pytest.mark.parametrize(
    "wanted",
    [
        {"policies": [], "nonsense": 1},
        {"policy": "os:system"},
        {"policy": "unheard"},
        {"policy": 3},
        {"settings": []},
        {"settings": {"unheard": 1}},
        {"settings": {"seed": "x"}},
        {"settings": {"seed": True}},
        {"settings": {"tie_margin": "x"}},
        {"settings": {"exploration_budget": 7}},
        {"settings": {"exploration_budget": -0.1}},
        {"settings": {"max_loss_s": float("inf")}},
        {"settings": {"baseline_answers": 0}},
        {"settings": {"half_life_s": 5}},
        {"settings": {"priors": {"ar": 5}}},
        {"settings": {"observe_only_policy": "os:system"}},
        {"policy": "observe_only", "settings": {"observe_only_control": "observe_only"}},
        {"policy": "round_robin", "settings": {"unheard": 1}},
    ],
)
def test_a_bad_change_changes_nothing(wanted):
    switch = _switch()
    before = switch.describe()
    with pytest.raises(BadRequest):
        switch.change(wanted)
    assert switch.describe() == before
