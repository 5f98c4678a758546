"""The stats store within one process: for tests, simulations and a gateway without Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.telemetry.stats import Moments
from router.telemetry.store.base import (
    DAY_EPOCHS,
    KEEP_DAYS,
    Batch,
    CellName,
    Cut,
    SharedStats,
    TotalName,
    before_cut,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Cells = dict[CellName, Moments]


class MemoryStatsStore:
    """Dictionaries; never unavailable."""

    def __init__(self) -> None:
        self._epochs: dict[int, Cells] = {}
        self._days: dict[int, Cells] = {}
        self._cuts: dict[CellName, Cut] = {}
        self._totals: dict[TotalName, dict[str, float]] = {}
        self._numbers: dict[str, int] = {}

    async def publish(self, batch: Batch) -> None:
        """Add a batch."""
        if batch.number <= self._numbers.get(batch.gateway, -1):
            return
        self._numbers[batch.gateway] = batch.number
        for (epoch, cell), moments in batch.rows.items():
            _add(self._epochs.setdefault(epoch, {}), cell, moments)
        for name, sums in batch.totals.items():
            held = self._totals.setdefault(name, {})
            for field, amount in sums.items():
                held[field] = held.get(field, 0.0) + amount
        self._cuts |= batch.cuts

    async def load(self) -> SharedStats:
        """Copies, so that a reader's view does not move."""
        epochs = {epoch: dict(cells) for epoch, cells in self._epochs.items()}
        days = {day: dict(cells) for day, cells in self._days.items()}
        return SharedStats(epochs, days, dict(self._cuts))

    async def totals(self) -> Mapping[TotalName, Mapping[str, float]]:
        """Plain sums."""
        return {name: dict(sums) for name, sums in self._totals.items()}

    async def roll_up(self, now_epoch: int) -> None:
        """Fold what is older than a day."""
        for epoch in [e for e in self._epochs if e <= now_epoch - DAY_EPOCHS]:
            day = self._days.setdefault(epoch // DAY_EPOCHS, {})
            for cell, moments in self._epochs.pop(epoch).items():
                _add(day, cell, before_cut(moments, epoch, self._cuts.get(cell)))
        oldest = now_epoch // DAY_EPOCHS - KEEP_DAYS
        for day_number in [d for d in self._days if d < oldest]:
            del self._days[day_number]
        self._cuts = {c: cut for c, cut in self._cuts.items() if cut.epoch // DAY_EPOCHS >= oldest}

    async def aclose(self) -> None:
        """Nothing to let go of."""


def _add(cells: Cells, cell: CellName, moments: Moments) -> None:
    cells[cell] = cells.get(cell, Moments()).plus(moments)
