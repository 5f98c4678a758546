"""Children that die with their parent: on real processes, killed with SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from workers.launch import orphaned, wrapped

PARENT = """
import os, subprocess, sys
from workers.launch import wrapped
child = subprocess.Popen(wrapped(("/bin/sleep", "60"), os.getpid()))
print(child.pid, flush=True)
child.wait()
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_command_runs_in_the_same_process_with_its_status():
    done = subprocess.run(wrapped(("/bin/sh", "-c", "exit 7"), os.getpid()), check=False)
    assert done.returncode == 7


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells of a parent's death on Linux")
def test_kill_9_of_the_parent_ends_the_child():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert alive(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 2.0
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def test_a_child_whose_parent_is_already_gone_does_not_start():
    done = subprocess.run(wrapped(("/bin/echo", "started"), 1), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert orphaned(os.getpid())
    assert not orphaned(os.getppid())
