from __future__ import annotations

from collections import Counter

from router.core import Reason
from router.policy import PolicySettings, build_policy
from router.policy.baselines import LeastLoaded, ObserveOnly, RoundRobin, Static
from tests.fakes.outcomes import outcome
from tests.fakes.routing import question, snapshot, trio


def test_round_robin_takes_each_in_turn():
    policy = RoundRobin()
    turns = [policy.choose(question()).worker for _ in range(6)]
    assert turns == ["plain", "prose", "code"] * 2


def test_round_robin_skips_the_full_while_another_is_free():
    policy = RoundRobin()
    full = snapshot("full", in_flight=2)
    assert {policy.choose(question(full, snapshot())).worker for _ in range(4)} == {"plain"}


def test_least_loaded_counts_shares_of_slots():
    big = snapshot("big", in_flight=2, record={"slots": 8})
    small = snapshot("small", in_flight=1)
    decision = LeastLoaded().choose(question(small, big))
    assert (decision.worker, decision.reason) == ("big", Reason.LEAST_LOADED)


def test_static_keeps_to_its_worker_and_falls_back_to_the_first():
    assert Static("code").choose(question()).worker == "code"
    assert Static("gone").choose(question()).worker == "plain"


def test_observe_only_serves_by_the_control_and_shows_the_other():
    seen = []
    cautious = build_policy("learned", PolicySettings(exploration_budget=0.0))
    policy = ObserveOnly(cautious, Static("plain"), lambda *pair: seen.append(pair))
    decision = policy.choose(question())
    assert decision.worker == "plain"
    assert decision.policy == "observe_only:learned=prose"
    assert all(candidate.estimate is not None for candidate in decision.candidates)
    assert [pair[0].worker for pair in seen] == ["prose"]
    assert (policy.asked, policy.agreed) == (1, 0)


def test_observe_only_teaches_the_watched_policy():
    learned = build_policy("learned")
    ObserveOnly(learned, RoundRobin()).observe(outcome())
    assert len(list(learned.knowledge.speeds.measured())) == 1


def test_controls_spread_over_the_trio():
    policy = RoundRobin()
    counts = Counter(policy.choose(question(*trio())).mode for _ in range(9))
    assert set(counts.values()) == {3}
