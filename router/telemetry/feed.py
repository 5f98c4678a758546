"""Fan-out of finished requests to dashboard viewers: a slow one loses the oldest rows."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from router.telemetry.decision_log import row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from router.core import Outcome

BACKLOG: Final = 200
"""Rows a viewer may be behind before it loses the oldest."""


class Viewer:
    """One reader's bounded inbox."""

    def __init__(self, backlog: int) -> None:
        self._rows: asyncio.Queue[dict[str, Any]] = asyncio.Queue(backlog)
        self.dropped = 0

    def push(self, item: dict[str, Any]) -> None:
        """Add one row, at the price of the oldest if the inbox is full."""
        if self._rows.full():
            self._rows.get_nowait()
            self.dropped += 1
        self._rows.put_nowait(item)

    async def next(self) -> dict[str, Any]:
        """The oldest row not yet read; waits for one."""
        return await self._rows.get()


class Feed:
    """A sink; rows are made only while somebody watches."""

    def __init__(self, *, backlog: int = BACKLOG) -> None:
        self._backlog = backlog
        self._viewers: set[Viewer] = set()

    def record(self, outcome: Outcome) -> None:
        """Give one outcome to every viewer (the form of the decision log)."""
        if self._viewers:
            item = row(outcome)
            for viewer in self._viewers:
                viewer.push(item)

    @contextmanager
    def watch(self) -> Iterator[Viewer]:
        """A viewer for the length of the block."""
        viewer = Viewer(self._backlog)
        self._viewers.add(viewer)
        try:
            yield viewer
        finally:
            self._viewers.discard(viewer)
