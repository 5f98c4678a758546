"""`specroute up` as a subprocess on a free port with a state folder of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

READY_WITHIN = 120.0  # seconds; the slowest shared machine seen needed 20


@dataclass
class RunningStack:
    """A running `up`: its address, folder, process and what it printed so far."""

    url: str
    state_dir: Path
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    @property
    def admin(self) -> dict[str, str]:
        token = (self.state_dir / "admin-token").read_text().strip()
        return {"authorization": f"Bearer {token}"}

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, headers=self.admin, timeout=30.0)

    def workers(self) -> dict[str, dict]:
        rows = self.get("/ops/workers").json()
        rows = rows["workers"] if isinstance(rows, dict) else rows
        return {row["name"]: row for row in rows}

    def wait_until(self, condition, seconds: float = 60.0, what: str = "condition"):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(0.1)
        pytest.fail(f"{what} did not come true within {seconds:.0f} s\n" + "\n".join(self.lines))


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_stack(state_dir: Path, *arguments: str, port: int | None = None) -> RunningStack:
    """Start `specroute up` and wait for its `ready` line."""
    port = port or free_port()
    command = [sys.executable, "-m", "router", "up", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--state-dir", str(state_dir), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("SPECROUTE_")},
        start_new_session=True,
    )
    stack = RunningStack(f"http://127.0.0.1:{port}", state_dir, process)
    threading.Thread(target=_collect, args=(process, stack.lines), daemon=True).start()
    deadline = time.monotonic() + READY_WITHIN
    while not any(line.startswith("ready ") for line in stack.lines):
        if process.poll() is not None or time.monotonic() > deadline:
            stop_stack(stack)
            pytest.fail("`specroute up` did not get ready:\n" + "\n".join(stack.lines))
        time.sleep(0.05)
    return stack


def _collect(process: subprocess.Popen[str], lines: list[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:  # one by one: others read `lines` meanwhile
        lines += [line.rstrip("\n")]
    process.stdout.close()


def stop_stack(stack: RunningStack) -> None:
    """Ctrl-C, then no mercy."""
    if stack.process.poll() is None:
        stack.process.send_signal(signal.SIGINT)
    try:
        stack.process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(stack.process.pid, signal.SIGKILL)
        stack.process.wait()


def processes_below(state_dir: Path) -> list[int]:
    """Pids of live processes that name this state folder in argv or environment."""
    needle = str(state_dir).encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            if needle in text and state != "Z":
                found.append(int(entry.name))
    return found
