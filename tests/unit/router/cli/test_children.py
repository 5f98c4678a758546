"""A child logs to its file, ends when told, and when its parent is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

from router.cli.children import start_child

SLEEP = [sys.executable, "-c", "print('started', flush=True); import time; time.sleep(60)"]
DEAF = [
    *(sys.executable, "-c"),
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('started', flush=True); time.sleep(60)",
]


async def started(argv, tmp_path):
    child = await start_child("part", argv, log=tmp_path / "part.log", env=os.environ)
    for _ in range(200):
        if "started" in child.last_lines():
            return child
        await asyncio.sleep(0.05)
    raise AssertionError("the child did not start")


async def test_it_logs_and_stops(tmp_path):
    child = await started(SLEEP, tmp_path)
    await child.stop(patience=10)
    assert child.process.returncode == -signal.SIGTERM
    await child.stop(patience=10)  # a second time is nothing


async def test_a_deaf_child_is_killed(tmp_path):
    child = await started(DEAF, tmp_path)
    await child.stop(patience=0.2)
    assert child.process.returncode == -signal.SIGKILL


def test_it_dies_with_a_killed_parent(tmp_path):
    program = (
        "import asyncio, os, sys, pathlib\n"
        "from router.cli.children import start_child\n"
        "async def main():\n"
        "    child = await start_child('c', [sys.executable, '-c', 'import time; time.sleep(60)'],"
        f" log=pathlib.Path({str(tmp_path / 'c.log')!r}), env=os.environ)\n"
        "    print(child.process.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("the child outlived its parent")
