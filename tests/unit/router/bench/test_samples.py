"""Runs one after the other are one measurement."""

from __future__ import annotations

import pytest

from router.bench.load import Job, Sample
from router.bench.samples import append, read
from router.bench.workload import PROMPTS
from workers.timings import Timings


def _sample(number: int, **changes) -> Sample:
    job = Job("routed", PROMPTS[number], "tiny", round=number, max_tokens=160, seed=number)
    return Sample(job, total_s=0.5, timings=Timings(predicted_n=20, predicted_ms=100.0), **changes)


def test_what_was_kept_comes_back_by_concurrency(tmp_path):
    path = tmp_path / "all.jsonl"
    assert read(path) == {}
    append(path, 1, [_sample(0), _sample(1, error="HTTP 500")])
    append(path, 4, [_sample(2, mode="ar", thought=True)])
    append(path, 1, [_sample(3)])
    assert read(path) == {
        1: [_sample(0), _sample(1, error="HTTP 500"), _sample(3)],
        4: [_sample(2, mode="ar", thought=True)],
    }


@pytest.mark.parametrize("line", [b"{", b"[]", b"{}", b'{"concurrency": 1, "job": 3}'])
def test_other_files_are_refused_with_the_line(tmp_path, line):
    path = tmp_path / "all.jsonl"
    append(path, 1, [_sample(0)])
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(ValueError, match="line 2"):
        read(path)
