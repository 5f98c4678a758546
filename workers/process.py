"""The only file that starts and signals a worker's operating system process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from workers.launch import wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ROTATE_BYTES = 10 * 1024 * 1024
_KEPT = 3  # rotated logs per worker
_TAIL_BYTES = 64 * 1024


@dataclass(slots=True)
class Process:
    """One running worker. `log_start` is where this run begins in its log."""

    pid: int
    log_path: Path
    log_start: int
    _child: asyncio.subprocess.Process

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._child.returncode

    async def wait(self) -> int:
        """Until it ends; the exit status."""
        return await self._child.wait()

    def terminate(self) -> None:
        """SIGTERM; nothing when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._child.terminate()

    def kill(self) -> None:
        """SIGKILL; nothing when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._child.kill()

    async def stop(self, patience: float) -> int:
        """SIGTERM, and SIGKILL after `patience` seconds; the exit status."""
        if self.returncode is None:
            self.terminate()
            try:
                async with asyncio.timeout(patience):
                    return await self.wait()
            except TimeoutError:
                self.kill()
        return await self.wait()

    def said(self, lines: int = 20) -> tuple[str, ...]:
        """The last lines this run wrote."""
        try:
            with self.log_path.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self.log_start, end - _TAIL_BYTES))
                text = log.read(_TAIL_BYTES).decode(errors="replace")
        except OSError:
            return ()
        return tuple(line for line in text.splitlines() if line.strip())[-lines:]

    def resident_bytes(self) -> int | None:
        """Memory that is in use, weights mapped from a file included; None where unknown."""
        try:
            with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return None

    def cpu_seconds(self) -> float | None:
        """Processor time used so far, of all its threads; None where unknown."""
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
                fields = stat.read().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])  # utime, stime (proc(5): 14 and 15)
        except (OSError, IndexError, ValueError):
            return None
        return ticks / os.sysconf("SC_CLK_TCK")


async def spawn(argv: tuple[str, ...], env: Mapping[str, str], log_path: Path) -> Process:
    """Start a worker whose output goes to its log file.

    It dies with this process, however that ends, and does not get the terminal's Ctrl-C: we end it
    in our own order. Call it from the thread that runs the event loop (see launch.py).

    A log that cannot be written, on a full disk for example, is no reason not to serve.

    Raises:
        OSError: the program cannot be started.
    """
    with _opened(log_path) as log:
        start = log.tell()
        child = await asyncio.create_subprocess_exec(
            *wrapped(argv, os.getpid()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(env),
            start_new_session=True,
        )
    return Process(child.pid, log_path, start, child)


def _opened(log_path: Path) -> BinaryIO:
    try:
        rotate(log_path)
        return log_path.open("ab")
    except OSError:
        return open(os.devnull, "ab")


def rotate(log_path: Path, limit: int = _ROTATE_BYTES) -> None:
    """Make the folder; move a log of more than `limit` bytes to `.1`, older ones up to `.3`."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    if not log_path.exists() or log_path.stat().st_size <= limit:
        return
    for number in range(_KEPT - 1, 0, -1):
        older = log_path.with_name(f"{log_path.name}.{number}")
        if older.exists():
            older.replace(log_path.with_name(f"{log_path.name}.{number + 1}"))
    log_path.replace(log_path.with_name(f"{log_path.name}.1"))


def free_port(host: str) -> int:
    """A port nobody listens on just now; whoever starts next may still take it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
