"""Where routed requests went, against the mode that measured fastest."""

from __future__ import annotations

from router.bench.load import Job, Sample
from router.bench.report import summarise
from router.bench.shares import shares
from router.bench.workload import Prompt
from workers.timings import Timings


def sample(target: str, mode: str, tokens_per_second: float) -> Sample:
    prompt = Prompt("prose", "story", "en", "x")
    job = Job(target, prompt, model=target, round=1, max_tokens=10, seed=0)
    timings = Timings(predicted_n=101, predicted_ms=100_000 / tokens_per_second)
    return Sample(job, total_s=1.0, mode=mode, timings=timings)


def test_the_share_counts_modes_of_routed_answers_only():
    samples = [
        sample("ar", "ar", 100.0),
        sample("mtp-n3", "mtp-n3", 50.0),
        sample("routed", "ar", 100.0),
        sample("routed", "ar", 100.0),
        sample("routed", "mtp-n3", 400.0),
    ]
    (share,) = shares(summarise(samples), samples, routed="routed")
    assert share.fastest == "ar"
    assert share.went_there == 2 / 3
    assert share.as_dict()["routed_to"] == {"ar": 2, "mtp-n3": 1}


def test_a_target_that_is_called_like_its_worker_counts_as_its_mode():
    samples = [
        sample("plain", "ar", 100.0),
        sample("code", "mtp-n3", 50.0),
        sample("routed", "ar", 100.0),
    ]
    (share,) = shares(summarise(samples), samples, routed="routed")
    assert (share.fastest, share.went_there) == ("ar", 1.0)
