"""Reads Redis into a Snapshot: once a second at most, however many viewers there are.

Nothing is read while nobody looks. Slices that have closed are kept; only the newest are read
again, so a day of history costs its hundred hashes once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from router.dashboard.figures import MeasuredCell, Snapshot
from router.telemetry import Knowledge
from router.telemetry.history import SLICES, Slice
from router.telemetry.history_store import DECISIONS_KEPT, HAPPENINGS_KEPT, HistoryUnavailable
from router.telemetry.merging import Merger
from router.telemetry.speedups import speedups
from router.telemetry.store.base import StoreUnavailable
from workers.registry import RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router.telemetry.history_store import Entry, HistoryStore, SliceSums
    from router.telemetry.speedups import Speedup
    from router.telemetry.store import StatsStore
    from workers.clock import Clock
    from workers.record import WorkerRecord
    from workers.registry import Registry

log = structlog.get_logger(__name__)

FRESH_S: Final = 1.0
LEARNED_S: Final = 3.0
"""Speed-ups change slowly, and reading them is the dearest part."""

PATIENCE_S: Final = 4.0
SHOWN: Final[dict[int, int]] = {60: 3 * 3600, 600: 7 * 86_400}
"""Seconds of history that are read, by width of slice."""

REREAD_SLICES: Final = 3  # the running one, and those a gateway may still be writing to
RELOAD_S: Final = 300.0  # all slices again: gateways deliver late after an outage
AWAY: Final = (RegistryUnavailable, StoreUnavailable, HistoryUnavailable, TimeoutError)


class Source:
    """One per dashboard process."""

    def __init__(
        self,
        registry: Registry,
        history: HistoryStore,
        store: StatsStore,
        clock: Clock,
        *,
        half_life_s: float,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._lock = asyncio.Lock()
        self._past = _Past(history)
        self._learned = _Learned(store, half_life_s)
        self._snapshot: Snapshot | None = None
        self._learned_at = self._loaded_at = float("-inf")

    async def current(self) -> Snapshot:
        """The state, at most a second old; while Redis is away the last known, with `trouble`."""
        async with self._lock:
            known, now = self._snapshot, self._clock.wall()
            if known is not None and not known.trouble and 0 <= now - known.at < FRESH_S:
                return known
            try:
                async with asyncio.timeout(PATIENCE_S):
                    self._snapshot = await self._read(now)
            except AWAY as error:
                reason = str(error) or "no answer"
                self._loaded_at = float("-inf")
                self._snapshot = replace(known or Snapshot(at=0.0), trouble=reason)
            return self._snapshot

    async def _read(self, now: float) -> Snapshot:
        records: Sequence[WorkerRecord] = await self._registry.list()
        if not 0 <= now - self._learned_at < LEARNED_S:
            await self._learned.read()
            self._learned_at = now
        whole = not 0 <= now - self._loaded_at < RELOAD_S
        await self._past.read(now, whole=whole)
        self._loaded_at = now if whole else self._loaded_at
        return Snapshot(
            at=now,
            records=records,
            gateways=await self._past.history.gateways(),
            speedups=self._learned.speedups,
            cells=self._learned.cells,
            slices=self._past.slices,
            decisions=tuple(self._past.decisions),
            happenings=tuple(self._past.happenings),
        )


class _Reader(Protocol):
    """How a stream is read."""

    async def __call__(self, *, after: str) -> list[Entry]: ...


class _Past:
    """Slices and streams, read incrementally."""

    def __init__(self, history: HistoryStore) -> None:
        self.history = history
        self.slices: dict[Slice, SliceSums] = {}
        self.decisions: deque[Entry] = deque(maxlen=DECISIONS_KEPT)
        self.happenings: deque[Entry] = deque(maxlen=HAPPENINGS_KEPT)

    async def read(self, now: float, *, whole: bool) -> None:
        """Bring everything up to `now`."""
        wanted = [one for width in SLICES for one in _wanted(width, now, whole=whole)]
        found = await self.history.slices(wanted)
        oldest = {width: int((now - span) // width) for width, span in SHOWN.items()}
        merged = {**({} if whole else self.slices), **found}
        self.slices = {s: v for s, v in merged.items() if s.number >= oldest[s.width] and v}
        await self._follow(self.decisions, self.history.decisions)
        await self._follow(self.happenings, self.history.happenings)

    async def _follow(self, known: deque[Entry], read: _Reader) -> None:
        fresh = await read(after=known[0].id if known else "-")
        known.extendleft(reversed(fresh))


class _Learned:
    """Speed-ups as the gateways compute them: same state, same functions."""

    def __init__(self, store: StatsStore, half_life_s: float) -> None:
        self._store = store
        self._knowledge = Knowledge(half_life_s=half_life_s)
        self._merger = Merger()
        self.speedups: tuple[Speedup, ...] = ()
        self.cells: tuple[MeasuredCell, ...] = ()

    async def read(self) -> None:
        """Load the sums of all gateways and what they amount to."""
        known = self._knowledge
        keep = {name: table.shape.keep for name, table in known.tables.items()}
        shared = await self._store.load()
        known.adopt(self._merger.merge(shared, known.fade, keep), shared.moved)
        totals = await self._store.totals()
        self.speedups = speedups(known.speeds, totals)
        self.cells = tuple(MeasuredCell(*row) for row in known.speeds.measured())


def _wanted(width: int, now: float, *, whole: bool) -> list[Slice]:
    newest = int(now // width)
    count = SHOWN[width] // width if whole else REREAD_SLICES
    return [Slice(width, newest - back) for back in range(count)]
