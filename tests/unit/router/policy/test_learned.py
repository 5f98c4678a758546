from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest

from router.core import Reason
from router.policy import LearnedPolicy, PolicySettings
from router.telemetry import Knowledge
from tests.fakes.outcomes import classification, outcome
from tests.fakes.routing import WALL, question, snapshot, trio

SPEEDS = {"plain": 20.0, "prose": 40.0, "code": 22.0}
MODES = {"plain": "ar", "prose": "mtp-n3", "code": "dflash2-margin"}


def policy(**changes) -> LearnedPolicy:
    return LearnedPolicy(PolicySettings(**changes), Knowledge())


def taught(**changes) -> LearnedPolicy:
    made = policy(**changes)
    for number in range(40):
        for name, speed in SPEEDS.items():
            done = outcome(
                worker=name, mode=MODES[name], tokens_per_second=speed, at=WALL - 100 + number
            )
            made.observe(done)
    made.knowledge.settle()
    return made


def test_the_measured_fastest_is_chosen():
    decisions = [taught().choose(question(request_id=f"r{i}")) for i in range(5)]
    assert {d.worker for d in decisions} == {"prose"}
    assert {d.reason for d in decisions} == {Reason.PREDICTED_FASTEST}
    assert decisions[0].mode == "mtp-n3"
    assert decisions[0].estimate().decode_tokens_per_second == pytest.approx(40, rel=0.1)


def test_a_pin_a_mode_and_a_lonely_worker_give_their_reasons():
    made = policy()
    assert made.choose(question(worker="code")).reason is Reason.PINNED
    assert made.choose(question(mode="ar")).reason is Reason.MODE_REQUESTED
    assert made.choose(question(snapshot())).reason is Reason.ONLY_CANDIDATE


def test_a_required_mode_with_two_workers_still_takes_the_faster():
    made = taught(baseline_share=0.0)
    twins = (*trio(), snapshot("slow", "mtp-n3", in_flight=2, remaining_tokens=(900.0, 900.0)))
    decision = made.choose(question(*twins, mode="mtp-n3"))
    assert (decision.worker, decision.reason) == ("prose", Reason.MODE_REQUESTED)


def test_the_more_of_a_conversation_a_worker_holds_the_less_it_is_left():
    made, seen = taught(), []
    for tokens in range(0, 4000, 50):
        held = {"home": "code", "cached_tokens": {"code": float(tokens)}}
        decision = made.choose(question(conversation="c", prompt_tokens=float(tokens), **held))
        assert not decision.explored
        step = (decision.worker, decision.reason)
        if step not in seen:
            seen.append(step)
    assert seen == [
        ("prose", Reason.PREDICTED_FASTEST),
        ("code", Reason.AFFINITY),
        ("code", Reason.PREDICTED_FASTEST),
    ]


def test_an_unmeasured_fleet_is_tried_out():
    made = policy()
    chosen = Counter()
    for number in range(60):
        decision = made.choose(question(request_id=f"r{number}"))
        name = decision.worker
        chosen[name] += 1
        made.observe(
            outcome(worker=name, mode=MODES[name], tokens_per_second=SPEEDS[name], at=WALL + number)
        )
    assert chosen["prose"] > 40
    assert chosen["code"] >= 1


def test_explored_choices_carry_their_propensity():
    made = policy(baseline_share=0.0)
    found = [made.choose(question(request_id=f"r{i}")) for i in range(200)]
    tried = [d for d in found if d.reason is Reason.EXPLORATION]
    assert tried
    assert all(0.0 < d.propensity < 1.0 and d.explored for d in tried)


def test_known_ar_is_not_tried_for_a_text_that_drafters_have_not_met():
    made = taught(baseline_share=0.0)
    asked = question(classification=classification("reasoning", 1.0, language="ru"))
    prices = made._cost.price(made._cost.prepare(asked), asked.view.workers)
    plain, drafter = prices[0], prices[1]
    assert plain.worker.mode == "ar"
    assert plain.whole < 0.5 * math.hypot(plain.spread, drafter.group)
    found = [made.choose(replace(asked, request_id=f"r{i}")) for i in range(300)]
    assert "plain" not in {d.worker for d in found}


def test_ar_is_measured_at_a_floor_and_not_beyond():
    made = taught()
    made._plain.clear()
    made._answers["tiny"] = [10_000, 0]
    decisions = [made.choose(question(request_id=f"r{i}")) for i in range(4000)]
    plain = [d for d in decisions if d.reason is Reason.BASELINE]
    assert 1 <= len(plain) <= 40
    assert {d.worker for d in plain} == {"plain"}
    made._answers["tiny"] = [10_000, 100]
    decisions = [made.choose(question(request_id=f"r{i}")) for i in range(4000)]
    assert not [d for d in decisions if d.reason is Reason.BASELINE]


def test_the_same_conversation_and_state_give_the_same_choice():
    first, second = policy(), policy()
    for number in range(100):
        asked = question(request_id=f"r{number}", conversation=f"c{number}")
        other = replace(asked, request_id="another", wall=asked.wall + 1.0)
        assert first.choose(asked).worker == second.choose(other).worker


def test_a_big_fleet_is_priced_from_a_shortlist_that_keeps_the_home():
    made = taught(priced_workers=4)
    fleet = [*trio(), *(snapshot(f"more{i}") for i in range(30))]
    decision = made.choose(question(*fleet, home="more29", cached_tokens={"more28": 10.0}))
    priced = {c.worker for c in decision.candidates if c.estimate is not None}
    assert {"more28", "more29", "prose"} <= priced
    assert len(priced) == 6
    assert len(decision.candidates) == 33
    passed = next(c for c in decision.candidates if c.worker == "more20")
    assert passed.excluded_because == "not among the cheapest at first sight"


def test_odd_outcomes_are_survived():
    made = policy()
    for changes in ({"classification": None}, {"worker": "", "mode": ""}, {"wall_time": 0.0}):
        made.observe(replace(outcome(), **changes))
    assert made.choose(question()).worker in MODES


def test_only_a_taken_slot_enters_the_budget_of_exploration():
    made = policy(baseline_share=0.0)
    budget = made.explorer.budget
    found = [made.choose(question(request_id=f"r{i}")) for i in range(200)]
    tried = next(d for d in found if d.reason is Reason.EXPLORATION and d.worker == "plain")
    assert budget.share_spent == 0.0  # nothing was served yet
    made.reserved(tried)
    best = min(c.estimate.total_s for c in tried.candidates)
    own = tried.estimate().total_s
    assert budget.share_spent == pytest.approx((own - best) / own)
    made.reserved(next(d for d in found if d.reason is Reason.PREDICTED_FASTEST))
    assert 0.0 < budget.share_spent < (own - best) / own


def test_twins_of_the_best_worker_are_never_explored():
    made = policy(baseline_share=0.0)
    twins = [snapshot(f"twin{i}", "mtp-n3", record={"spec_hash": "same"}) for i in range(3)]
    found = [made.choose(question(*twins, request_id=f"r{i}")) for i in range(300)]
    assert {d.reason for d in found} == {Reason.PREDICTED_FASTEST}
    assert len({d.worker for d in found}) == 1
