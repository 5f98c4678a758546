"""CPU per request of several states of the gateway, measured in turns, before and after a change.

    python tests/perf/turns.py before=/path/to/checkout after=. [compiled=/path/to/bin/python] ...

Each is started once; in every round each serves the same load. CPU is the scheduler's own count
of nanoseconds over all threads, so that one round of 2,000 requests tells a hundredth.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import click
import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.perf.load import run
from tests.perf.profile_gateway import CASES
from tests.perf.targets import ROOT, Target, start_ours, start_stub

_SETTLES_S = 0.15  # lines are written a tenth of a second after their requests
_SHOWN = ("plain, pinned", "plain, routed")


@click.command()
@click.argument("states", nargs=-1, required=True)
@click.option("--rounds", default=4, show_default=True)
@click.option("--case", "cases", multiple=True, default=_SHOWN, show_default=True)
def main(states: tuple[str, ...], rounds: int, cases: tuple[str, ...]) -> None:
    """Print median, lowest and highest CPU microseconds per request of each NAME=PATH."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stub, ours = start_stub(folder), {}
        try:
            for state in states:
                label, _, path = state.partition("=")
                ours[label] = _start(folder / label, stub.port, Path(path).absolute())
            for case in cases:
                _compare(ours, case, rounds)
        finally:
            for one in ours.values():
                one.stop()
            stub.stop()


def _start(folder: Path, backend: int, path: Path) -> Target:
    folder.mkdir()
    if path.is_dir():
        return start_ours(folder, backend, root=path)
    return start_ours(folder, backend, native=path, root=ROOT)


def _compare(ours: dict[str, Target], case: str, rounds: int) -> None:
    used: dict[str, list[float]] = {label: [] for label in ours}
    for number in range(rounds + 1):
        for label, one in ours.items():
            each = _serve(one, case)
            if number:  # the first warms up
                used[label].append(each)
    for label, rows in used.items():
        middle, low, high = statistics.median(rows), min(rows), max(rows)
        click.echo(f"{case:26s} {label:12s} {middle:6.0f} us [{low:.0f} to {high:.0f}]")


def _serve(one: Target, case: str) -> float:
    load, extra = CASES[case]
    before = _cpu_ns(one)
    sample = uvloop.run(run(load, one.port, one.headers + extra))
    time.sleep(_SETTLES_S)
    if sample.failures:
        raise click.ClickException(f"{sample.failures} requests failed")
    return (_cpu_ns(one) - before) / 1e3 / (load.connections * load.each)


def _cpu_ns(one: Target) -> int:
    """Of all threads that live; the gateway ends none while it serves."""
    if one.process is None:
        return 0
    tasks = Path(f"/proc/{one.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


if __name__ == "__main__":
    main()
