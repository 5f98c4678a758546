"""Which GPUs this host has, asked from nvidia-smi; none where there is no such program."""

from __future__ import annotations

import csv
import shutil
import subprocess

from workers.placement import GPU

_QUERY = "index,name,memory.total,memory.free"
_TIMEOUT_S = 10.0


def inventory(path: str) -> tuple[GPU, ...]:
    """The NVIDIA devices, with nvidia-smi looked for in `path`; empty when it cannot be asked."""
    program = shutil.which("nvidia-smi", path=path)
    if program is None:
        return ()
    try:
        done = subprocess.run(  # noqa: S603 - a fixed query
            [program, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse(done.stdout)


def parse(text: str) -> tuple[GPU, ...]:
    """The devices in nvidia-smi's comma-separated lines; lines that are none are left out."""
    rows = (tuple(map(str.strip, row)) for row in csv.reader(text.splitlines()))
    return tuple(
        GPU(int(row[0]), row[1], int(row[2]), int(row[3]))
        for row in rows
        if len(row) == 4 and all(row[i].isdigit() for i in (0, 2, 3))
    )
