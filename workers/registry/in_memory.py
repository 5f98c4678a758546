"""The registry of one process: for tests, and for `up` when it runs without Redis."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workers.registry.base import EXPIRY_S, POLL_S, Command

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from workers.clock import Clock
    from workers.record import WorkerRecord


class MemoryRegistry:
    """Same contract as the one in Redis; one event loop."""

    def __init__(self, clock: Clock, *, poll_s: float = POLL_S) -> None:
        self._clock = clock
        self._poll_s = poll_s
        self._records: dict[str, tuple[WorkerRecord, float]] = {}
        self._inboxes: list[asyncio.Queue[Command]] = []
        self._changed = asyncio.Event()

    async def publish(self, record: WorkerRecord) -> None:
        """Store the record and wake every watcher."""
        self._store(record)
        self._notify()

    async def heartbeat(self, record: WorkerRecord) -> None:
        """Store the record quietly."""
        self._store(record)

    async def remove(self, name: str) -> None:
        """Forget a worker."""
        self._records.pop(name, None)
        self._notify()

    async def list(self) -> tuple[WorkerRecord, ...]:
        """Every worker whose last heartbeat is younger than EXPIRY_S."""
        now = self._clock.monotonic()
        living = [record for record, seen in self._records.values() if now - seen < EXPIRY_S]
        return tuple(sorted(living, key=lambda record: record.name))

    async def watch(self) -> AsyncGenerator[tuple[WorkerRecord, ...], None]:
        """The list now, after each change, and at least every `poll_s`."""
        while True:
            changed = self._changed  # taken before the read, so that no change slips between
            yield await self.list()
            try:
                await asyncio.wait_for(changed.wait(), self._poll_s)
            except TimeoutError:
                continue

    async def send(self, command: Command) -> int:
        """Put the command into every listener's inbox."""
        for inbox in self._inboxes:
            inbox.put_nowait(command)
        return len(self._inboxes)

    async def commands(self) -> AsyncGenerator[Command, None]:
        """Orders from now on."""
        inbox: asyncio.Queue[Command] = asyncio.Queue()
        self._inboxes.append(inbox)
        try:
            while True:
                yield await inbox.get()
        finally:
            self._inboxes.remove(inbox)

    async def aclose(self) -> None:
        """Nothing to let go of."""

    def _store(self, record: WorkerRecord) -> None:
        self._records[record.name] = (record, self._clock.monotonic())

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
