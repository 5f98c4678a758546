from __future__ import annotations

import math
from random import Random
from statistics import fmean

import pytest

from router.core import Candidate, CostEstimate, Reason, RoutingDecision, Status
from router.policy import PolicySettings, build_policy
from router.simulation.replay import TooLittleEvidence, replay
from tests.fakes.logged import logged_row as row
from tests.fakes.outcomes import outcome

MODES = {"plain": "ar", "prose": "mtp-n3", "code": "dflash2-margin"}
SPEEDS = {"plain": 20.0, "prose": 40.0, "code": 28.0}
SHARES = {"plain": 0.5, "prose": 0.2, "code": 0.3}


def logged(count: int, shares=SHARES, seed: int = 1):
    """Rows of a policy that chose by `shares`, and the seconds each worker would have taken."""
    rng, rows, truth = Random(seed), [], []
    candidates = tuple(Candidate(n, m, CostEstimate(decode_s=1.0)) for n, m in MODES.items())
    for number in range(count):
        worker = rng.choices(list(shares), list(shares.values()))[0]
        tokens, noise = rng.randint(50, 400), math.exp(rng.gauss(0.0, 0.2))
        seconds = {name: (tokens - 1) / (speed * noise) for name, speed in SPEEDS.items()}
        truth.append(seconds)
        done = outcome(
            worker=worker,
            mode=MODES[worker],
            tokens=tokens,
            tokens_per_second=SPEEDS[worker] * noise,
            at=1_700_000_000.0 + number,
            total_s=seconds[worker],
            decision=RoutingDecision(
                worker,
                MODES[worker],
                Reason.EXPLORATION,
                candidates,
                "learned",
                propensity=shares[worker],
            ),
        )
        rows.append(row(done))
    return rows, truth


def static(worker: str):
    return build_policy("static", PolicySettings(static_worker=worker))


@pytest.mark.parametrize("worker", MODES)
def test_the_estimate_is_within_five_percent_of_the_truth(worker):
    rows, truth = logged(4000)
    found = replay(rows, static(worker))
    assert found.replayed_s == pytest.approx(fmean(t[worker] for t in truth), rel=0.05)
    assert found.ci_low < found.replayed_s < found.ci_high
    assert found.matched < found.requests == 4000


def test_the_learned_policy_would_have_been_faster_and_the_log_shows_it():
    rows, truth = logged(3000)
    found = replay(rows, build_policy("learned"))
    assert found.replayed_s < 0.85 * found.logged_s
    assert found.replayed_s == pytest.approx(fmean(t["prose"] for t in truth), rel=0.08)


def test_too_few_effective_requests_are_refused():
    rows, _ = logged(400, {"plain": 0.99, "prose": 0.005, "code": 0.005})
    with pytest.raises(TooLittleEvidence, match="effective requests of 400"):
        replay(rows, static("prose"))
    with pytest.raises(TooLittleEvidence):
        replay([], static("prose"))


def test_failures_retries_and_refusals_are_left_out():
    rows, _ = logged(200, {"plain": 1.0})
    odd = [row(outcome(status=Status.UPSTREAM_ERROR)), row(outcome(retried=True))]
    odd.append(row(outcome(decision=None)))
    odd.append(row(outcome(status=Status.SHED, classification=None)))
    assert replay([*odd, *rows], static("plain")).requests == 200
