"""What every policy must do, run over the catalogue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from router.core import BadRequest, FleetView, Loading, NoWorker, Outcome, Status
from router.policy import POLICIES, build_policy
from tests.fakes.outcomes import outcome
from tests.fakes.routing import WALL, features, question, snapshot, trio
from workers.state import WorkerState
from workers.timings import Timings


@pytest.fixture(params=POLICIES)
def policy(request):
    return build_policy(request.param)


def test_it_chooses_a_worker_of_the_view_and_lists_every_candidate(policy):
    decision = policy.choose(question())
    policy.reserved(decision)
    assert decision.worker in {"plain", "prose", "code"}
    assert {c.worker for c in decision.candidates} == {"plain", "prose", "code"}
    assert decision.mode == next(w for w in trio() if w.name == decision.worker).record.mode
    assert 0.0 < decision.propensity <= 1.0


def test_it_says_why_the_others_were_left_out(policy):
    ill = snapshot("ill", record={"state": WorkerState.DRAINING})
    decision = policy.choose(question(*trio(), ill))
    assert decision.worker != "ill"
    left_out = {c.worker: c.excluded_because for c in decision.candidates if c.excluded_because}
    assert left_out == {"ill": "draining"}


def test_pins_and_required_modes_win(policy):
    for number in range(20):
        asked = question(request_id=f"r{number}", worker="code")
        assert policy.choose(asked).worker == "code"
        asked = question(request_id=f"r{number}", mode="ar")
        assert policy.choose(asked).worker == "plain"


def test_what_failed_already_is_not_chosen_again(policy):
    for number in range(20):
        asked = question(request_id=f"r{number}", excluded=frozenset({"plain", "prose"}))
        assert policy.choose(asked).worker == "code"


def test_a_full_fleet_still_gets_a_choice_to_queue_for(policy):
    full = trio(in_flight=2, total_in_flight=2, remaining_tokens=(10.0, 500.0))
    assert policy.choose(question(*full)).worker in {"plain", "prose", "code"}


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"view": FleetView("tiny", ())}, NoWorker),
        ({"worker": "nobody"}, BadRequest),
        ({"mode": "eagle3"}, BadRequest),
        ({"prompt_tokens": 1e6}, BadRequest),
        ({"features": features(has_images=True)}, BadRequest),
    ],
)
def test_refusals_are_those_of_the_seam(policy, changes, refusal):
    with pytest.raises(refusal) as raised:
        policy.choose(question(**changes))
    assert raised.value.message


def test_while_all_load_it_says_loading(policy):
    loading = snapshot("slow", record={"state": WorkerState.LOADING})
    with pytest.raises(Loading):
        policy.choose(question(loading))


ODD = [
    {"classification": None},
    {"decision": None},
    {"timings": Timings()},
    {"timings": Timings(predicted_n=0, predicted_ms=0.0, prompt_n=0, prompt_ms=0.0)},
    {"timings": Timings(predicted_n=100, predicted_ms=1.0, draft_n=0, draft_n_accepted=0)},
    {"timings": Timings(predicted_n=50, predicted_ms=10.0, draft_n=3, draft_n_accepted=400)},
    {"worker_key": "", "worker": "", "mode": ""},
    {"context_tokens": None, "prompt_tokens": None, "completion_tokens": None},
    {"wall_time": 0.0, "occupancy": -3, "prompt_chars": 10**9},
]


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("odd", ODD)
def test_it_learns_from_anything_and_never_raises(policy, status, odd):
    policy.observe(replace(outcome(status=status), **odd))
    assert policy.choose(question()).worker in {"plain", "prose", "code"}


def test_a_bare_outcome_is_enough(policy):
    policy.observe(Outcome("r", "/v1/chat/completions", "tiny", Status.OK, WALL))
