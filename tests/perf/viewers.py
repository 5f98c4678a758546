"""Whether open dashboards cost requests anything: the gateway's CPU per request, with and without.

    python -m tests.perf.viewers --rounds 12

One gateway with everything on, one dashboard process, three viewers that refresh as a browser's
page does. Rounds with and without them alternate, so that a busy machine disturbs both alike. Where
there are two processors the gateway has one for itself: whatever else runs, and how much of it,
then neither takes its cache nor its turn.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import httpx
import uvloop

from tests.perf.load import Load, run
from tests.perf.targets import (
    KEY,
    ROOT,
    Target,
    family,
    free_port,
    spawn,
    start_ours,
    start_stub,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

VIEWERS = ("/", "/classes", "/decisions")
REFRESH_S = 2.0  # as static/app.js does
T_95 = 2.2  # Student's t for about a dozen rounds


@dataclass
class Viewer:
    """One open page; `refreshes` counts what it was shown."""

    client: httpx.Client
    path: str
    refreshes: int = 0

    def watch(self, stop: threading.Event) -> None:
        """Until told to stop."""
        tag = ""
        while not stop.is_set():
            headers = {"if-none-match": tag} if tag else {}
            answer = self.client.get(self.path, params={"part": "content"}, headers=headers)
            if answer.status_code not in (200, 304):
                raise RuntimeError(f"{self.path}: {answer.status_code}")
            tag = answer.headers.get("etag", tag)
            self.refreshes += 1
            stop.wait(REFRESH_S)


@contextmanager
def watching(viewers: list[Viewer]) -> Iterator[None]:
    """All of them at once for this block."""
    stop = threading.Event()
    threads = [threading.Thread(target=viewer.watch, args=(stop,)) for viewer in viewers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextmanager
def dashboard(folder: Path) -> Iterator[list[Viewer]]:
    """The process, and three viewers that have signed in."""
    port = free_port()
    argv = [sys.executable, "-m", "router", "dashboard", "-c", str(folder / "specroute.yaml")]
    argv += ["--port", str(port), "--state-dir", str(folder / "state")]
    process = spawn(argv, folder, "dashboard", PYTHONPATH=str(ROOT))
    url = f"http://127.0.0.1:{port}"
    clients = [httpx.Client(base_url=url, timeout=60.0) for _ in VIEWERS]
    try:
        wait_for(f"{url}/health", process)
        for client in clients:
            client.post("/sign-in", data={"token": f"{KEY}-admin"})
        yield [Viewer(client, path) for client, path in zip(clients, VIEWERS, strict=True)]
    finally:
        for client in clients:
            client.close()
        Target("dashboard", port, process).stop()


def alone(ours: Target) -> None:
    """The gateway on the first processor, everything else of this measurement on the others."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2 or ours.process is None:
        return
    mine = family(ours.process.pid)
    for pid in family(os.getpid()):
        chosen = processors[:1] if pid in mine else processors[1:]
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), chosen)


def cpu_per_request(ours: Target, load: Load) -> float:
    """CPU microseconds of the gateway for each request of one load.

    Raises:
        RuntimeError: a request failed.
    """
    before = ours.cpu_s()
    sample = uvloop.run(run(load, ours.port, ours.headers))
    if sample.failures:
        raise RuntimeError(f"{sample.failures} requests failed")
    return 1e6 * (ours.cpu_s() - before) / (load.connections * load.each)


def compare(ours: Target, viewers: list[Viewer], load: Load, rounds: int) -> list[float]:
    """The logarithm of with / without, for each round; which comes first alternates."""
    ratios = []
    for number in range(rounds):
        found = {}
        for watched in (number % 2 == 0, number % 2 == 1):
            if watched:
                with watching(viewers):
                    found[True] = cpu_per_request(ours, load)
            else:
                found[False] = cpu_per_request(ours, load)
        click.echo(f"without {found[False]:6.0f} us, with {found[True]:6.0f} us a request")
        ratios.append(math.log(found[True] / found[False]))
    return ratios


@click.command()
@click.option("--rounds", default=12, show_default=True)
@click.option("--requests", default=2400, show_default=True, help="In each half of a round.")
def main(rounds: int, requests: int) -> None:
    """Print the ratio with its 95 % interval."""
    load = Load(8, requests // 8)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stub = start_stub(folder)
        try:
            ours = start_ours(folder, stub.port)
            try:
                with dashboard(folder) as viewers:
                    alone(ours)
                    cpu_per_request(ours, Load(8, 100))
                    ratios = compare(ours, viewers, load, rounds)
                    shown = sum(viewer.refreshes for viewer in viewers)
            finally:
                ours.stop()
        finally:
            stub.stop()
    middle, spread = statistics.mean(ratios), statistics.stdev(ratios)
    half = T_95 * spread / math.sqrt(len(ratios))
    low, high = (math.exp(end) for end in (middle - half, middle + half))
    click.echo(
        f"with / without: {math.exp(middle):.3f} ({low:.3f} to {high:.3f}); {shown} refreshes"
    )


if __name__ == "__main__":
    main()
