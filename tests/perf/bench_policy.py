"""How long one decision takes: CPU time of `choose`, with 3 and with 200 workers.

CPU time, not wall time: a shared machine may stop anybody for a while. Between decisions an outcome
is learned every few requests, so that remembered forecasts are also made anew. Run:
    python tests/perf/bench_policy.py
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import quantiles

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from router.policy import build_policy
from tests.fakes.outcomes import classification, outcome
from tests.fakes.routing import question, snapshot

MODES = ("ar", "mtp-n3", "dflash2-margin")
GROUP = 20  # decisions per figure: the clock of CPU time is coarse
BAR_US = {3: 80.0, 200: 1000.0}


def fleet(count: int):
    """Busy workers of the three modes, each with its own hash."""
    return tuple(
        snapshot(
            f"w{i}",
            MODES[i % 3],
            slots=8,
            in_flight=1,
            remaining_tokens=(120.0,),
            record={"slots": 8},
        )
        for i in range(count)
    )


def measure(workers: int, requests: int, learn_every: int) -> list[float]:
    """CPU microseconds per decision of each group, sorted."""
    policy, view = build_policy("learned"), fleet(workers)
    for worker in view:
        for number in range(20):
            name, mode = worker.name, worker.record.mode
            policy.observe(outcome(worker=name, mode=mode, at=1_700_000_000.0 + number))
    first = question(*view, classification=classification("prose", 0.7))
    times = []
    for number in range(0, requests, GROUP):
        asked = [replace(first, request_id=f"r{number + i}") for i in range(GROUP)]
        spent = 0
        for index, one in enumerate(asked):
            if learn_every and index % learn_every == 0:
                policy.observe(outcome(worker=view[0].name, mode=view[0].record.mode))
            start = time.process_time_ns()
            policy.reserved(policy.choose(one))
            spent += time.process_time_ns() - start
        times.append(spent / GROUP / 1000.0)
    return sorted(times)


@click.command()
@click.option("--requests", type=int, default=2000, show_default=True)
def main(requests: int) -> None:
    """Print p50 and p99 per fleet size; exit 1 when a median misses the design's bar."""
    missed = False
    for workers, bar in BAR_US.items():
        for learn_every in (0, 4, 1):
            times = measure(workers, max(200, requests // (workers // 3)), learn_every)
            cuts = quantiles(times, n=100)
            missed = missed or (learn_every != 1 and cuts[49] > bar)
            click.echo(
                f"{workers:4d} workers, learning every {learn_every or '-'}: "
                f"p50 {cuts[49]:7.1f} us   p99 {cuts[98]:7.1f} us   (bar {bar:g} us)"
            )
    sys.exit(int(missed))


if __name__ == "__main__":
    main()
