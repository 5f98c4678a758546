"""Outcomes from the request path to every sink: a bounded queue that sheds and never blocks."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

import structlog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router.core import Outcome

log = structlog.get_logger(__name__)

CAPACITY: Final = 10_000
LEARNED_PER_SECOND: Final = 50  # more answers than a fleet of a hundred slots ends in a second
GATHER_S: Final = 0.05
"""How long outcomes gather: a sink that handles many in a row costs half of what it costs each time
with a whole request in between, which leaves nothing of it in the processor's caches."""
_AT_ONCE: Final = 16  # outcomes handled before the event loop gets its turn


class Sink(Protocol):
    """Where outcomes go."""

    def __call__(self, outcome: Outcome, /) -> None:
        """Take one outcome; quick, synchronous, does not raise."""
        ...


class Sampled:
    """A sink that learns: it is given so many outcomes of each second and the rest pass it by.

    A busy gateway learns as much from a part of its answers, at a part of the cost; which part is a
    matter of time alone, so that no class and no worker is preferred.
    """

    def __init__(self, sink: Sink, per_second: int = LEARNED_PER_SECOND) -> None:
        self._sink = sink
        self._per_second = per_second
        self._second = 0
        self._given = 0

    def __call__(self, outcome: Outcome, /) -> None:
        """Pass one outcome on, while this second has room."""
        second = int(outcome.wall_time)
        if second != self._second:
            self._second, self._given = second, 0
        if self._given < self._per_second:
            self._given += 1
            self._sink(outcome)


class Recorder:
    """`record` on the request path, `run` in a task of the composition root."""

    def __init__(self, sinks: Sequence[Sink], *, capacity: int = CAPACITY) -> None:
        self._sinks = tuple(sinks)
        self._capacity = capacity
        self._waiting: deque[Outcome] = deque()
        self._wake = asyncio.Event()
        self.recorded = 0
        self.shed = 0  # outcomes dropped because the queue was full
        self.failures = 0  # sinks that raised all the same

    def add(self, sink: Sink) -> None:
        """One more who is told of every outcome from now on."""
        self._sinks = (*self._sinks, sink)

    def record(self, outcome: Outcome) -> None:
        """Queue one outcome; drops it, counted, when the queue is full."""
        if len(self._waiting) >= self._capacity:
            self.shed += 1
            return
        self._waiting.append(outcome)
        self._wake.set()

    @property
    def waiting(self) -> int:
        """Outcomes not yet handed to the sinks."""
        return len(self._waiting)

    async def run(self) -> None:
        """Hand outcomes to the sinks until cancelled; what waits then is still handed over."""
        try:
            while True:
                await self._wake.wait()
                await asyncio.sleep(GATHER_S)
                self._wake.clear()
                while self._waiting:
                    self.drain(_AT_ONCE)
                    await asyncio.sleep(0)
        finally:
            self.drain()

    def drain(self, at_most: int | None = None) -> None:
        """Hand over what waits, at once: everything to one sink, then to the next."""
        count = len(self._waiting) if at_most is None else min(at_most, len(self._waiting))
        batch = [self._waiting.popleft() for _ in range(count)]
        for sink in self._sinks:
            for outcome in batch:
                try:
                    sink(outcome)
                except Exception:  # one broken sink must not keep outcomes from the others
                    self.failures += 1
                    log.exception("sink_failed", sink=getattr(sink, "__qualname__", repr(sink)))
        self.recorded += count
