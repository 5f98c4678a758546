from __future__ import annotations

from router.policy.hysteresis import Hysteresis

NAMES = ("a", "b")


def test_a_conversation_stays_unless_leaving_gains_the_margin():
    keeper = Hysteresis(switch_margin=0.15, tie_margin=0.01)
    assert keeper.at_home(NAMES, (1.0, 0.9), "a") == 0
    assert keeper.at_home(NAMES, (1.0, 0.8), "a") is None
    assert keeper.at_home(NAMES, (1.0, 0.9), "gone") is None


def test_a_home_with_several_arms_keeps_the_conversation_in_the_best_of_them():
    keeper = Hysteresis(switch_margin=0.15, tie_margin=0.01)
    assert keeper.at_home(("a", "a", "b"), (3.0, 1.0, 0.9), "a") == 1
    assert keeper.at_home(("a", "a", "b"), (3.0, 1.0, 0.8), "a") is None


def test_a_kind_of_request_changes_its_worker_only_beyond_a_tie():
    keeper = Hysteresis(switch_margin=0.15, tie_margin=0.02)
    assert keeper.incumbent("prose", NAMES, (1.0, 0.99)) == 1
    keeper.remember("prose", "a")
    assert keeper.incumbent("prose", NAMES, (1.0, 0.99)) == 0
    assert keeper.incumbent("prose", NAMES, (1.0, 0.97)) == 1
    assert keeper.incumbent("code", NAMES, (1.0, 0.99)) == 1


def test_an_incumbent_that_is_gone_leaves_the_best():
    keeper = Hysteresis(0.15, 0.5)
    keeper.remember("prose", "gone")
    assert keeper.incumbent("prose", NAMES, (1.0, 0.99)) == 1


def test_the_memory_of_kinds_is_bounded():
    keeper = Hysteresis(0.15, 0.5)
    keeper.remember("first", "a")
    for number in range(5000):
        keeper.remember(number, "a")
    assert keeper.incumbent("first", NAMES, (1.0, 0.99)) == 1
    assert keeper.incumbent(4999, NAMES, (1.0, 0.99)) == 0
