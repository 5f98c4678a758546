"""What one scrape of /metrics costs a gateway, in CPU milliseconds.

    python -m tests.perf.scrape --workers 50

A fleet of that many workers in three modes has served every class; the text is then made as the
endpoint makes it, speed-ups with their intervals included.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time

from classifier import WorkloadClass
from router.app.learning import metrics_of
from router.telemetry import Knowledge
from router.telemetry.metrics import Gauges, Metrics, WorkerGauge
from tests.fakes.gateway import record
from tests.fakes.outcomes import outcome

MODES = ("ar", "mtp-n3", "dflash2-margin")


def filled(workers: int, answers: int) -> Metrics:
    """What a gateway knows after so many answers of so many workers."""
    chance = random.Random(7)
    records = [
        record(f"worker-{n}", mode=MODES[n % 3], effective_mode=MODES[n % 3], slots=4)
        for n in range(workers)
    ]
    gauges = [WorkerGauge(r.name, r.model, r.mode, True, 4, 2, "ready") for r in records]
    knowledge = Knowledge()
    metrics = metrics_of(knowledge, lambda: Gauges(gauges, {"tiny": 3}, True))
    for _ in range(answers):
        worker = chance.choice(records)
        done = outcome(
            worker=worker.name,
            mode=worker.mode,
            name=str(chance.choice(list(WorkloadClass))),
            tokens_per_second=chance.uniform(40, 80),
        )
        knowledge.observe(done)
        metrics.observe(done)
    return metrics


def main() -> int:
    """Print the median of CPU time, and the size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=50)
    parser.add_argument("--answers", type=int, default=5000)
    parser.add_argument("--scrapes", type=int, default=50)
    options = parser.parse_args()
    metrics = filled(options.workers, options.answers)
    times = []
    for _ in range(options.scrapes):
        begun = time.process_time()
        text = metrics.text()
        times.append(1000.0 * (time.process_time() - begun))
    sys.stdout.write(
        f"{options.workers} workers: {statistics.median(times):.2f} ms of CPU a scrape "
        f"(least {min(times):.2f}), {len(text)} bytes, {len(text.splitlines())} lines\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
