"""What `up` shows while workers load: live bars on a terminal, a line per change elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from workers.state import WorkerState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from workers.record import WorkerRecord


class LoadingDisplay:
    """Progress of workers by name; everything goes to stderr, so that stdout stays for scripts."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._said: dict[str, str] = {}
        self._live = sys.stderr.isatty()
        self._bars = Progress(
            TextColumn("{task.description:16}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=not self._live,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> LoadingDisplay:
        self._bars.start()
        for name in self._names:
            self._tasks[name] = self._bars.add_task(name, total=1.0, state="waiting")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop drawing; a second time does nothing."""
        self._bars.stop()

    def show(self, records: Sequence[WorkerRecord]) -> None:
        """Draw the workers as they are now."""
        for record in records:
            if record.name not in self._tasks:
                continue
            text = _text(record)
            done = 1.0 if record.state.serves else record.progress
            self._bars.update(self._tasks[record.name], completed=done, state=text)
            if not self._live and self._said.get(record.name) != text:
                click.echo(f"{record.name}: {text}", err=True)
            self._said[record.name] = text


def _text(record: WorkerRecord) -> str:
    if record.state is WorkerState.READY:
        return f"ready ({record.mode})"
    return f"{record.state}: {record.reason}" if record.reason else str(record.state)
