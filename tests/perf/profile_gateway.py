"""CPU of the gateway process per request and per chunk, everything on, and where it goes.

    python tests/perf/profile_gateway.py [--spy PY_SPY] [--processes N]

A short version of the comparison for whoever changes the data path: only our gateway, no peers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.perf.load import Load, run
from tests.perf.targets import start_ours, start_stub

# A frame of ours in a collapsed stack: its package, or the part of `router` that it belongs to.
_OURS = re.compile(r"\((?:[^()]*/)?(router/\w+|classifier|workers)[^()]*:\d+\)")
PINNED = "x-specroute-worker: plain\r\n"
IDLE_S = 20.0
CASES = {
    "plain, routed": (Load(8, 250), ""),
    "plain, pinned": (Load(8, 250), PINNED),
    "plain, routed, 16 tokens": (Load(8, 150, tokens=16), ""),
    "stream of 16, routed": (Load(8, 150, tokens=16, stream=True), ""),
    "64 streams at 50/s": (Load(64, 1, tokens=150, gap_ms=20, stream=True), ""),
}


@click.command()
@click.option("--spy", help="A py-spy binary: profiles each case, and prints shares by room.")
@click.option("--out", default="profile.txt", show_default=True)
@click.option("--only", type=int, help="Number of one case.")
@click.option("--times", default=2, show_default=True)
@click.option("--processes", default=1, show_default=True, help="Serving processes.")
@click.option("--native", type=click.Path(path_type=Path), help="A Python with `make native`'s.")
def main(
    spy: str | None, out: str, only: int | None, times: int, processes: int, native: Path | None
) -> None:
    """Print CPU microseconds per request of each case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stub = start_stub(folder)
        try:
            ours = start_ours(folder, stub.port, processes, native)
        except RuntimeError:
            stub.stop()
            raise
        try:
            click.echo(f"health after {ours.started_s:.2f} s; {ours.rss_mb():.0f} MB")
            uvloop.run(run(Load(8, 100), ours.port, ours.headers))
            for index, (case, (load, extra)) in enumerate(CASES.items()):
                if only is not None and index != only:
                    continue
                watcher = _spy(spy, ours.process.pid, out) if spy else None
                for _ in range(times):
                    before = ours.cpu_s()
                    begin = time.monotonic()
                    sample = uvloop.run(run(load, ours.port, ours.headers + extra))
                    rate = load.connections * load.each / (time.monotonic() - begin)
                    used = ours.cpu_s() - before
                    each = 1e6 * used / (load.connections * load.each)
                    click.echo(
                        f"{case:28s} {each:8.0f} us/request {rate:8.0f} /s  "
                        f"failures {sample.failures}"
                    )
                    if sample.chunks:
                        click.echo(f"{'':28s} {1e5 * used / sample.chunks:8.2f} s/100k chunks")
                if watcher:
                    watcher.wait()
                    _print_shares(Path(out))
            click.echo(f"{ours.rss_mb():.0f} MB after the load")
            time.sleep(3.0)  # what answers taught is still being shared
            before = ours.cpu_s()
            time.sleep(IDLE_S)
            click.echo(f"{1e3 * (ours.cpu_s() - before) / IDLE_S:.0f} ms of CPU a second when idle")
        finally:
            ours.stop()
            stub.stop()


def _spy(spy: str, pid: int, out: str) -> subprocess.Popen[bytes]:
    # --gil: a thread that waits for lines to write is not at work, whatever the kernel says.
    what = ("--gil", "-r", "500", "-d", "6", "-f", "raw", "-o", out)
    return subprocess.Popen([spy, "record", "-p", str(pid), *what])


def _print_shares(profile: Path) -> None:
    """Who works, by the innermost frame of ours; what has none is the loop and the libraries."""
    shares: Counter[str] = Counter()
    for line in profile.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        frames = _OURS.findall(stack)
        shares[frames[-1] if frames else "event loop, threads of libraries"] += int(count)
    for room, count in shares.most_common():
        click.echo(f"{'':4s}{100 * count / shares.total():5.1f} %  {room}")


if __name__ == "__main__":
    main()
