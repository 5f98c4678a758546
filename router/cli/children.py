"""The child processes of `up`: started with a log file, watched, and never left behind."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.launch import wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(slots=True)
class Child:
    """One running child: its name in messages, its process and its log."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    def last_lines(self, count: int = 12) -> str:
        """The end of its log, for the sentence that says why it died."""
        with self.log.open(errors="replace") as lines:
            return "".join(deque(lines, count)).rstrip()

    async def stop(self, patience: float) -> None:
        """SIGTERM, then SIGKILL after `patience` seconds."""
        if self.process.returncode is not None:
            return
        self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), patience)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


async def start_child(
    name: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str]
) -> Child:
    """Start `argv` with its output appended to `log`.

    The child dies with us, kill -9 included (Linux), and gets no Ctrl-C of the terminal: we end it
    in our own order.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *wrapped(tuple(argv), os.getpid()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(env),
            start_new_session=True,
        )
    return Child(name, process, log)
