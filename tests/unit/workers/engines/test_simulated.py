from __future__ import annotations

from pathlib import Path

from workers.engines import LaunchContext
from workers.engines.simulated import Simulated
from workers.spec import WorkerSpec


def test_it_starts_the_simulator_with_the_workers_own_flags():
    spec = WorkerSpec("w", "m", "mtp-n3", engine="simulated", slots=3, args=("--script", "{}"))
    argv = Simulated().render_argv(spec, LaunchContext(("sim",), 9, Path("k")))
    assert argv == (
        *("sim", "--host", "127.0.0.1", "--port", "9", "--api-key-file", "k", "-np", "3"),
        *("-c", "4096", "--mode", "mtp-n3", "--script", "{}"),
    )
    assert Simulated().command(spec, "")[-1] == "workers.simulator"
    assert Simulated().problems(spec, None) == ()
