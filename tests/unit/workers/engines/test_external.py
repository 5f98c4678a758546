from __future__ import annotations

from pathlib import Path

from workers.engines import LaunchContext
from workers.engines.external import External
from workers.spec import WorkerSpec

SPEC = WorkerSpec(name="w", model="m", mode="ar", engine="external", url="http://h:1")


def test_there_is_nothing_to_start():
    launch = LaunchContext((), 1, Path("k"))
    assert External().command(SPEC, "") == ()
    assert External().render_argv(SPEC, launch) == ()
    assert External().problems(SPEC, None) == ()
    (problem,) = External().problems(WorkerSpec(name="w", model="m", mode="ar"), None)
    assert "url" in problem


def test_timings_of_llama_cpp_or_the_counts_of_usage():
    engine = External()
    assert engine.parse_timings({"timings": {"draft_n": 3}}).draft_n == 3
    usage = {"usage": {"prompt_tokens": 7, "completion_tokens": 9}}
    timings = engine.parse_timings(usage)
    assert (timings.prompt_n, timings.predicted_n, timings.draft_n) == (7, 9, None)
    assert engine.parse_timings({}).predicted_n is None
