"""Keeps one gateway's knowledge and the store's in step: once a second, never on the request path.

Own observations count at once; every second the increments go out and the sums of all gateways come
in. While the store is away increments wait, within a bound, and go out when it is back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import orjson
import structlog

from router.core.outcome import Status
from router.telemetry.merging import Merger
from router.telemetry.stats import Moments
from router.telemetry.store.base import (
    EPOCH_S,
    Batch,
    CellName,
    Cut,
    Row,
    SharedStats,
    StoreUnavailable,
    TotalName,
)

if TYPE_CHECKING:
    from router.core import Outcome
    from router.telemetry.knowledge import Knowledge
    from router.telemetry.stats import Cell
    from router.telemetry.store.base import StatsStore
    from workers.clock import Clock

log = structlog.get_logger(__name__)

INTERVAL_S: Final = 1.0
ROLL_UP_S: Final = 600.0
MAX_ROWS: Final = 50_000
"""Cells times epochs that may wait for the store: about 20 MB."""

NO_CLASS: Final = "none"  # class label of requests that were never classified


class StatsSync:
    """The recorder's sink for totals, and the task that publishes and loads."""

    def __init__(
        self, knowledge: Knowledge, store: StatsStore, clock: Clock, *, gateway: str
    ) -> None:
        self._known = knowledge
        self._store = store
        self._clock = clock
        self._pending = Batch(gateway, 0)
        self._sending: Batch | None = None
        self._shared = SharedStats()
        self._merger = Merger()
        self.available = False
        self.rows_shed = 0
        self._listen()

    def record(self, outcome: Outcome) -> None:
        """Add a finished request to the plain totals (`Knowledge` is taught by the policy)."""
        what = outcome.classification
        name = TotalName(
            outcome.model,
            str(what.workload_class) if what is not None else NO_CLASS,
            outcome.mode or NO_CLASS,
        )
        sums = self._pending.totals.setdefault(name, {})
        for field, amount in _amounts(outcome):
            if amount is not None:
                sums[field] = sums.get(field, 0) + amount

    async def run(self) -> None:
        """Publish and load every second until cancelled."""
        rolled = self._clock.monotonic()
        while True:
            await self.sync()
            if self._clock.monotonic() - rolled >= ROLL_UP_S:
                rolled = self._clock.monotonic()
                await self._roll_up()
            await asyncio.sleep(INTERVAL_S)

    async def sync(self) -> bool:
        """One exchange with the store; False while it is away."""
        try:
            await self._flush()
            self._shared = await self._store.load()
        except StoreUnavailable as error:
            self._note(available=False, reason=str(error))
            return False
        self._note(available=True, reason="")
        self._adopt()
        return True

    async def _flush(self) -> None:
        if self._sending is None:
            if self._pending.empty:
                return
            self._sending = self._pending
            self._pending = Batch(self._sending.gateway, self._sending.number + 1)
        await self._store.publish(self._sending)
        self._sending = None

    async def _roll_up(self) -> None:
        try:
            await self._store.roll_up(self._epoch())
        except StoreUnavailable as error:
            self._note(available=False, reason=str(error))

    def _adopt(self) -> None:
        """What came in, and on top what was observed while it came."""
        keep = {name: table.shape.keep for name, table in self._known.tables.items()}
        shared = self._shared.plus(self._pending)
        merged = self._merger.merge(shared, self._known.fade, keep)
        self._known.adopt(merged, shared.moved)

    def _listen(self) -> None:
        for name, table in self._known.tables.items():

            def heard(cell: Cell, y: float, weight: float, table_name: str = name) -> None:
                self._observed(table_name, cell, y, weight)

            def changed(cell: Cell, table_name: str = name) -> None:
                self._changed(table_name, cell)

            table.listener = heard
            table.on_change = changed

    def _observed(self, table: str, cell: Cell, y: float, weight: float) -> None:
        row = Row(self._epoch(), _name(table, cell))
        moments = self._pending.rows.get(row)
        if moments is None:
            if len(self._pending.rows) >= MAX_ROWS:
                self.rows_shed += 1
                return
            moments = self._pending.rows[row] = Moments()
        moments.add(y, weight)

    def _changed(self, table: str, cell: Cell) -> None:
        """Mark where the cell's past ends, also within the running epoch.

        The whole past is to weigh what the cell was left, and to say what it says: also what an
        earlier cut had made light of and moved, which this one replaces.
        """
        name, epoch = _name(table, cell), self._epoch()
        past = self._shared.past_of(name)
        for batch in (self._sending, self._pending):
            if batch is not None:
                past = past.plus(batch).past_of(name)
        keep = {table: self._known.tables[table].shape.keep}
        whole = Merger().merge(past, self._known.fade, keep).get(name)
        if whole is None or not whole.w:  # it was shed, or the store lost it: nothing to cut
            whole = cell.moments
        factor = cell.moments.w / whole.w
        jump = cell.moments.wy / cell.moments.w - whole.wy / whole.w
        base = past.epochs.get(epoch, {}).get(name, Moments())
        self._pending.cuts[name] = Cut(epoch, factor, base, jump, cell.moved)

    def _epoch(self) -> int:
        return int(self._clock.wall() // EPOCH_S)

    def _note(self, *, available: bool, reason: str) -> None:
        if available != self.available:
            log.info("stats_store", available=available, reason=reason)
        self.available = available


def _name(table: str, cell: Cell) -> CellName:
    if not cell.name:
        cell.name = orjson.dumps(cell.key, default=tuple).decode()
    return CellName(table, cell.name)


def _amounts(outcome: Outcome) -> list[tuple[str, float | None]]:
    """Counts and times of one request; None is what the worker did not report."""
    t = outcome.timings
    rows: list[tuple[str, float | None]] = [
        ("requests", 1),
        (f"requests_{outcome.status}", 1),
        ("prompt_n", t.prompt_n),
        ("cache_n", t.cache_n),
        ("predicted_n", t.predicted_n),
        ("draft_n", t.draft_n),
        ("draft_n_accepted", t.draft_n_accepted),
        ("prompt_ms", t.prompt_ms),
        ("predicted_ms", t.predicted_ms),
        ("total_s", outcome.total_s),
        ("queue_s", outcome.queue_s),
    ]
    if outcome.ttft_s is not None and outcome.status is Status.OK:
        rows += [("ttft_s", outcome.ttft_s), ("ttft_requests", 1)]
    return rows
