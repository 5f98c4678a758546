from __future__ import annotations

from pathlib import Path

import pytest

from workers.engines import EngineMissing, LaunchContext
from workers.engines.luce import Luce
from workers.spec import WorkerSpec

LAUNCH = LaunchContext(("dflash_server",), 9001, Path("w.key"))
END = ("--host", "127.0.0.1", "--port", "9001", "--model-name", "m")


def spec(mode, **changes):
    given = {"name": "w", "model": "m", "mode": mode, "engine": "luce", "context": 8192}
    return WorkerSpec(**{**given, "target": Path("t"), "draft": Path("d"), **changes})


@pytest.mark.parametrize(
    ("mode", "changes", "drafting"),
    [
        ("luce-chain", {}, ()),
        ("luce-chain", {"n_max": 8}, ("--verify-width", "8")),
        ("luce-ddtree", {}, ("--ddtree", "--ddtree-budget", "22")),
        ("luce-ddtree", {"n_max": 16}, ("--ddtree", "--ddtree-budget", "16")),
    ],
)
def test_its_command_line(mode, changes, drafting):
    start = ("dflash_server", "t", "--draft", "d", "--max-ctx", "8192")
    assert Luce().render_argv(spec(mode, **changes), LAUNCH) == (*start, *drafting, *END)


def test_args_come_last():
    assert Luce().render_argv(spec("luce-chain", args=("--x",)), LAUNCH)[-1] == "--x"


def test_timings_come_under_usage():
    final = {"usage": {"timings": {"predicted_n": 5, "draft_n": 4}}}
    assert Luce().parse_timings(final).draft_n == 4
    assert Luce().parse_timings({"usage": None}).predicted_n is None


def test_one_request_at_a_time_and_a_program_that_exists(tmp_path):
    (problem,) = Luce().problems(spec("luce-chain", slots=2), None)
    assert "slots to 1" in problem
    assert Luce().problems(spec("luce-chain"), None) == ()
    with pytest.raises(EngineMissing, match="dflash_server"):
        Luce().command(spec("luce-chain"), str(tmp_path))
