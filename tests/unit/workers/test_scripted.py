from __future__ import annotations

import pytest

from workers.scripted import Script, plan_answer
from workers.timings import Timings

ASK = {"messages": [{"role": "user", "content": "one two three"}]}


@pytest.mark.parametrize("tokens", [1, 2, 7, 64, 200])
@pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("n_max", [0, 1, 3, 7])
def test_what_is_reported_is_what_is_sent(tokens, acceptance, n_max):
    script = Script(mode="mtp", n_max=n_max, acceptance=acceptance, step_ms=2.0)
    answer = plan_answer(script, ASK | {"max_tokens": tokens})
    timings = Timings.from_payload(answer.timings)
    assert timings.predicted_n == sum(map(len, answer.words)) == tokens
    assert timings.predicted_ms == 2.0 * (len(answer.words) - 1)
    if tokens > 1:
        assert timings.steps == len(answer.words) - 1
    if n_max == 0 or tokens == 1:
        assert timings.draft_n is None
    else:
        assert timings.draft_n == n_max * timings.steps


def test_acceptance_comes_out_as_scripted():
    script = Script(mode="mtp", n_max=7, acceptance=0.4)
    answer = plan_answer(script, ASK | {"max_tokens": 2000})
    assert Timings.from_payload(answer.timings).acceptance_rate == pytest.approx(0.4, abs=0.005)


def test_a_plain_worker_drafts_nothing():
    assert "draft_n" not in plan_answer(Script(n_max=7, acceptance=1.0), ASK).timings


def test_prompts_are_counted_in_words():
    assert plan_answer(Script(), ASK).prompt_n == 4
    assert plan_answer(Script(), {"prompt": "a b"}).prompt_n == 3
