from __future__ import annotations

import pytest

from workers.timings import Timings

# A real answer of the MTP worker: 8 tokens, 2 verified steps of drafts.
PAYLOAD = {
    "cache_n": 10,
    "prompt_n": 22,
    "prompt_ms": 5.5,
    "predicted_n": 8,
    "predicted_ms": 70.0,
    "draft_n": 6,
    "draft_n_accepted": 5,
}


def test_the_contracts_definitions():
    timings = Timings.from_payload(PAYLOAD)
    assert timings.acceptance_rate == pytest.approx(5 / 6)
    assert timings.steps == 2
    assert timings.mean_accepted_length == pytest.approx(3.5)
    assert timings.decode_tokens_per_second == pytest.approx(100.0)
    assert timings.prompt_tokens == 32


def test_what_is_absent_is_unknown_and_not_zero():
    nothing = Timings.from_payload(None)
    assert nothing == Timings()
    assert nothing.acceptance_rate is None
    assert nothing.steps is None
    assert nothing.mean_accepted_length is None
    assert nothing.decode_tokens_per_second is None
    assert nothing.prompt_tokens is None


def test_a_plain_answer_takes_a_step_per_token():
    plain = Timings.from_payload({"predicted_n": 5, "predicted_ms": 10.0})
    assert plain.steps == 4
    assert plain.mean_accepted_length == 1.0
    assert plain.acceptance_rate is None


def test_what_cannot_be_is_unknown():
    fast = Timings.from_payload({"predicted_n": 20, "predicted_ms": 1e-320})
    assert (fast.predicted_n, fast.predicted_ms) == (20, None)
    assert Timings.from_payload({"predicted_n": 2000, "predicted_ms": 1.0}).predicted_ms is None
    more = Timings.from_payload({"draft_n": 5, "draft_n_accepted": 6})
    assert (more.draft_n, more.draft_n_accepted) == (None, None)
    assert Timings.from_payload({"prompt_n": 9, "prompt_ms": 0}).prompt_ms == 0.0


@pytest.mark.parametrize("bad", [True, -1, "3", 2.5, None, [1], 10_000_001])
def test_counts_of_other_types_are_unknown(bad):
    assert Timings.from_payload({"predicted_n": bad}).predicted_n is None


@pytest.mark.parametrize("bad", [True, -0.1, "3", float("nan"), float("inf"), None])
def test_times_that_are_none_are_unknown(bad):
    assert Timings.from_payload({"prompt_ms": bad}).prompt_ms is None
