"""A day of a million requests in the dashboard: how long pages take, and the process' memory.

    python -m tests.perf.dashboard_day

Seconds are wall time on 127.0.0.1: first of a process that has just started, then again.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from pathlib import Path

import click
import httpx

from router.dashboard.page import VIEWS
from tests.perf.targets import ROOT, Target, free_port, spawn, wait_for
from tests.support.redis_server import private_redis
from tests.support.simulated_day import CONFIG, write_day
from workers.clock import SystemClock

TOKEN, SECRET = "token-of-the-measurement", "secret-of-the-measurement"
PAGES = (*VIEWS.values(), "/?window=24h", "/timelines?range=24h", "/timelines?range=7d")


def measure(url: str) -> None:
    """Print each page's two times and its size."""
    with httpx.Client(base_url=url, timeout=60.0) as client:
        client.post("/sign-in", data={"token": TOKEN})
        for path in PAGES:
            times = []
            for _ in range(2):
                begun = time.perf_counter()
                answer = client.get(path)
                answer.raise_for_status()
                times.append(time.perf_counter() - begun)
            size = len(answer.content) / 1000
            click.echo(f"{path:24s} {times[0]:6.3f} s, again {times[1]:6.3f} s  {size:6.0f} kB")


@click.command()
@click.option("--requests", default=1_000_000, show_default=True)
def main(requests: int) -> None:
    """Print times and the peak of memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        socket, config = folder / "redis.sock", folder / "specroute.yaml"
        config.write_text(CONFIG)
        with private_redis(socket):
            while not socket.exists():
                time.sleep(0.01)
            url = f"unix://{socket}"
            asyncio.run(write_day(url, SECRET, SystemClock().wall(), requests=requests))
            port = free_port()
            argv = [sys.executable, "-m", "router", "dashboard", "-c", str(config)]
            argv += ["--port", str(port), "--state-dir", str(folder / "state")]
            process = spawn(
                argv,
                folder,
                "dashboard",
                PYTHONPATH=str(ROOT),
                SPECROUTE_REDIS__URL=url,
                SPECROUTE_AUTH__ADMIN_TOKEN=TOKEN,
                SPECROUTE_AUTH__CLUSTER_SECRET=SECRET,
            )
            try:
                wait_for(f"http://127.0.0.1:{port}/health", process)
                measure(f"http://127.0.0.1:{port}")
                status = Path(f"/proc/{process.pid}/status").read_text()
            finally:
                Target("dashboard", port, process).stop()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    peak = int(found[1]) / 1000 if found else float("nan")
    click.echo(f"peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
