"""What a running worker uses and last wrote: memory and the end of its log, for dashboards.

Reads files and asks nvidia-smi, never the worker itself, so it works on one that hangs.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workers.clock import Clock
    from workers.record import WorkerRecord

LINES: Final = 8
LINE_CHARS: Final = 200
_TAIL_BYTES: Final = 8192
_PRIVATE: Final = ('"content"', '"prompt"', "prompt:", "Authorization", "api-key", "api_key")
"""Marks of lines that a verbose server writes and that nobody should read elsewhere."""

GPU_EVERY_S: Final = 15.0
_TIMEOUT_S: Final = 3.0
_MIB: Final = 1024 * 1024


def last_lines(path: str, count: int = LINES) -> tuple[str, ...]:
    """The last lines of a log, cut to LINE_CHARS; none when it cannot be read."""
    if not path:
        return ()
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ()
    lines = [line.rstrip() for line in text.splitlines()[1 if size > _TAIL_BYTES else 0 :]]
    told = [line[:LINE_CHARS] for line in lines if line and not any(m in line for m in _PRIVATE)]
    return tuple(told[-count:])


def resident_bytes(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Memory of a process without what it merely mapped; None where /proc does not tell."""
    try:
        lines = (proc / str(pid) / "status").read_text().splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith("VmRSS:")), "")
    return 1024 * int(found) if found.isdigit() else None


def parse_gpu_memory(text: str) -> dict[int, int]:
    """Bytes by pid from nvidia-smi's `pid, used_memory` lines (MiB), summed over devices."""
    found: dict[int, int] = {}
    for line in text.splitlines():
        pid, _, used = (part.strip() for part in line.partition(","))
        if pid.isdigit() and used.isdigit():
            found[int(pid)] = found.get(int(pid), 0) + _MIB * int(used)
    return found


class Vitals:
    """Reads them at most once per GPU_EVERY_S where a program must be asked."""

    def __init__(self, path: str, clock: Clock) -> None:
        """`path` is where nvidia-smi is looked for."""
        self._program = shutil.which("nvidia-smi", path=path) if path else None
        self._clock = clock
        self._gpu: dict[int, int] = {}
        self._asked_at = float("-inf")

    async def refresh(self) -> None:
        """Ask nvidia-smi again when it is time."""
        now = self._clock.monotonic()
        if self._program is not None and now - self._asked_at >= GPU_EVERY_S:
            self._asked_at = now
            self._gpu = await asyncio.to_thread(_ask, self._program)

    def of(self, record: WorkerRecord) -> Mapping[str, Any]:
        """Fields of a worker's record."""
        pid = record.pid
        return {
            "log_tail": last_lines(record.log_path),
            "memory_bytes": resident_bytes(pid) if pid else None,
            "gpu_memory_bytes": self._gpu.get(pid) if pid else None,
        }


def _ask(program: str) -> dict[int, int]:
    query = [program, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed query
            query, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse_gpu_memory(done.stdout)
