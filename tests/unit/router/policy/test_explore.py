from __future__ import annotations

import pytest

from router.policy.explore import Budget, Explorer, Option, Traffic
from router.policy.settings import PolicySettings

BEST = Option(1.0, 0.3, 1.0, 50.0)
HORIZON = 300.0


def explorer(**changes) -> Explorer:
    return Explorer(PolicySettings(**changes))


def test_alone_the_best_is_certain():
    pick = explorer().pick([BEST], 0, 0.5, HORIZON)
    assert (pick.arm, pick.propensity, pick.explored) == (0, 1.0, False)


def test_propensities_are_the_shares_in_which_draws_fall():
    unsure = Option(1.1, 0.3, 1.1)
    picks = [explorer().pick([BEST, unsure], 0, (i + 0.5) / 1000, HORIZON) for i in range(1000)]
    tried = [pick for pick in picks if pick.arm == 1]
    assert len(tried) / 1000 == pytest.approx(tried[0].propensity, abs=0.002)
    assert tried[0].loss == pytest.approx(0.1)
    rest = next(pick for pick in picks if pick.arm == 0)
    assert rest.propensity + tried[0].propensity == pytest.approx(1.0)


def test_an_equal_arm_is_tried_half_the_time():
    pick = explorer().pick([BEST, Option(1.0, 0.3, 1.0)], 0, 0.0, HORIZON)
    assert pick.propensity == pytest.approx(0.5)


@pytest.mark.parametrize(
    "hopeless",
    [
        Option(1.6, 0.9, 1.6, 5.0),  # loses more than half the request
        Option(1.2, 0.001, 1.2, 500.0),  # surely slower
        Option(1.001, 0.0001, 1.0, 5000.0),  # nothing to gain
        Option(1.1, 0.0, 1.1, 50.0),  # nothing to learn
    ],
)
def test_what_is_not_worth_it_is_never_tried(hopeless):
    assert explorer().pick([BEST, hopeless], 0, 0.0, HORIZON).arm == 0


def test_a_known_loss_of_more_than_two_seconds_is_too_much():
    slow = Option(20.0, 6.0, 20.0, 50.0)
    assert explorer().pick([slow, Option(23.0, 8.0, 23.0, 10.0)], 0, 0.0, HORIZON).arm == 0
    assert explorer().pick([slow, Option(23.0, 8.0, 23.0, 0.0)], 0, 0.0, HORIZON).arm == 1


def test_ar_is_not_tried_to_learn_how_well_a_text_can_be_drafted():
    drafter = Option(1.0, 0.02, 1.0, 3.0, group=0.3)
    plain = Option(1.1, 0.02, 1.1)
    assert plain.unknown(drafter) > 0.2
    assert explorer().pick([drafter, plain], 0, 0.0, HORIZON).arm == 1
    known = plain._replace(most=0.02)
    assert known.unknown(drafter) == 0.02
    assert explorer().pick([drafter, known], 0, 0.0, HORIZON).arm == 0


def test_a_short_horizon_forbids_what_a_long_one_pays_for():
    dear = Option(1.35, 0.35, 1.35)
    assert explorer().pick([BEST, dear], 0, 0.0, 1.0).arm == 0
    assert explorer().pick([BEST, dear], 0, 0.0, HORIZON).arm == 1


def test_an_empty_budget_forbids_all():
    poor = explorer(exploration_budget=0.0)
    assert poor.pick([BEST, Option(1.1, 0.3, 1.1)], 0, 0.0, HORIZON).arm == 0


def test_the_budget_counts_a_rolling_window():
    budget = Budget(0.02, 100)
    budget.book(1.0, 10.0)
    assert budget.share_spent == pytest.approx(0.1)
    for _ in range(99):
        budget.book(0.0, 10.0)
    assert budget.share_spent == pytest.approx(0.001)
    budget.book(0.0, 10.0)
    assert budget.share_spent == 0.0


def test_the_first_requests_may_spend_ahead_but_not_for_long():
    budget = Budget(0.02, 1000)
    assert budget.affords(2.0, 1.0)
    assert not budget.affords(4.0, 1.0)
    for _ in range(600):
        budget.book(0.0, 1.0)
    assert budget.affords(12.0, 1.0)
    assert not budget.affords(12.1, 1.0)


def test_shares_of_classes_start_equal_and_follow_the_traffic():
    traffic = Traffic()
    traffic.count("m", "prose")
    assert traffic.count("m", "code") == pytest.approx(0.5)
    for _ in range(200):
        share = traffic.count("m", "code")
    assert share > 0.95
    for _ in range(10_000):
        traffic.count("m", "prose")
    assert traffic.count("m", "code") < 0.1
