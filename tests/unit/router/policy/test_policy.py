from __future__ import annotations

import pytest

from router.policy import POLICIES, LearnedPolicy, PolicySettings, build_policy
from router.policy.baselines import ObserveOnly, Static
from tests.fakes.routing import question


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_of_the_catalogue_bears_its_name(name):
    assert build_policy(name).name == name


def test_a_policy_out_of_tree_is_named_by_module_and_name():
    assert isinstance(build_policy("router.policy.learned:LearnedPolicy"), LearnedPolicy)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fastest", "there are learned"),
        ("no.such.module:Policy", "cannot be imported"),
        ("router.policy:Nothing", "cannot be imported"),
    ],
)
def test_an_unknown_policy_is_refused_with_what_there_is(name, told):
    with pytest.raises(ValueError, match=told):
        build_policy(name)


def test_settings_reach_the_policies():
    static = build_policy("static", PolicySettings(static_worker="code"))
    assert isinstance(static, Static)
    assert static.choose(question()).worker == "code"
    watching = build_policy("observe_only", PolicySettings(observe_only_control="round_robin"))
    assert isinstance(watching, ObserveOnly)
    assert [watching.choose(question()).worker for _ in range(2)] == ["plain", "prose"]
