"""The seam where gateways share what they learned: increments go in, sums of all come out.

Nothing is ever overwritten, so no lock is needed: a cell of an epoch is a sum of increments. Epochs
of five minutes roll up into days; days last 30 days.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from router.telemetry.stats import Moments

if TYPE_CHECKING:
    from collections.abc import Mapping

EPOCH_S: Final = 300
DAY_EPOCHS: Final = 288
KEEP_DAYS: Final = 30
_ROUNDING: Final = 1e-6  # of sums that went through text

FARTHEST: Final = 25.0
"""No quantity is farther from 1 than e to this (7e10), whatever it is: tables hold logarithms."""

_BEYOND: Final = FARTHEST * (1.0 + _ROUNDING)
_MOST: Final = 1e12  # answers that a cell may have seen
_HEAVIEST, _LIGHTEST = 10.0, 1e-12  # an answer weighs at most 1; room for another version's

TIME_SUFFIXES: Final = ("_ms", "_s")
"""Fields of the totals that are sums of times; every other field is a count."""


class StoreUnavailable(RuntimeError):
    """The store cannot be reached just now; keep the batch and try again."""


class CellName(NamedTuple):
    """A leaf cell: its table and its key as text."""

    table: str
    key: str


class Row(NamedTuple):
    """A cell in one epoch (number of five-minute periods since the Unix epoch)."""

    epoch: int
    cell: CellName


class TotalName(NamedTuple):
    """What plain totals are kept by."""

    model: str
    workload_class: str
    mode: str


class Cut(NamedTuple):
    """A cell changed: everything before counts `factor`, as if it had been higher by `jump`.

    `base` is the part of `epoch` before, `moved` how far all changes of the cell took its
    expectation from its prior. A later cut replaces an earlier one and speaks of the whole past.
    Of gateways that see a change at once the last one counts.
    """

    epoch: int
    factor: float
    base: Moments
    jump: float = 0.0
    moved: float = 0.0


@dataclass(slots=True)
class Batch:
    """What one gateway adds; `number` rises by one, so that a batch is never counted twice."""

    gateway: str
    number: int
    rows: dict[Row, Moments] = field(default_factory=dict)
    totals: dict[TotalName, dict[str, float]] = field(default_factory=dict)
    cuts: dict[CellName, Cut] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to add."""
        return not (self.rows or self.totals or self.cuts)


@dataclass(slots=True)
class SharedStats:
    """The sums of all gateways: per epoch, per day (older than a day), and the cuts."""

    epochs: Mapping[int, Mapping[CellName, Moments]] = field(default_factory=dict)
    days: Mapping[int, Mapping[CellName, Moments]] = field(default_factory=dict)
    cuts: Mapping[CellName, Cut] = field(default_factory=dict)

    @property
    def moved(self) -> dict[CellName, float]:
        """How far changes took the expectation of each cell that ever changed from its prior."""
        return {name: cut.moved for name, cut in self.cuts.items()}

    def past_of(self, name: CellName) -> SharedStats:
        """One cell's sums as they were observed, without what a cut made of them."""
        epochs, days = (
            {number: {name: cells[name]} for number, cells in rows.items() if name in cells}
            for rows in (self.epochs, self.days)
        )
        return SharedStats(epochs, days)

    def plus(self, batch: Batch) -> SharedStats:
        """These sums with a batch that the store has not seen yet."""
        if not (batch.rows or batch.cuts):
            return self
        epochs = dict(self.epochs)
        copied: dict[int, dict[CellName, Moments]] = {}
        for (epoch, cell), moments in batch.rows.items():
            if epoch not in copied:
                epochs[epoch] = copied[epoch] = dict(self.epochs.get(epoch, {}))
            copied[epoch][cell] = copied[epoch].get(cell, Moments()).plus(moments)
        return SharedStats(epochs, self.days, {**self.cuts, **batch.cuts})


class StatsStore(Protocol):
    """One place that every gateway of a cluster publishes to and loads from."""

    async def publish(self, batch: Batch) -> None:
        """Add a batch, all of it or nothing; a batch number already seen is ignored.

        Raises:
            StoreUnavailable: not stored, or not known to be; publish the same batch again.
        """
        ...

    async def load(self) -> SharedStats:
        """The sums as they are now.

        Raises:
            StoreUnavailable: cannot be reached.
        """
        ...

    async def totals(self) -> Mapping[TotalName, Mapping[str, float]]:
        """Plain sums since the store began, for dashboards.

        Raises:
            StoreUnavailable: cannot be reached.
        """
        ...

    async def roll_up(self, now_epoch: int) -> None:
        """Fold epochs older than a day into days; drop days and cuts older than 30 days.

        Raises:
            StoreUnavailable: cannot be reached.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


def before_cut(row: Moments, epoch: int, cut: Cut | None) -> Moments:
    """A cell's moments of one epoch as they count after its cut, if it has one.

    A store that lost data (an emptied Redis, a failover) no longer holds what the base counts:
    taking it away would leave sums that no observations have. Then what is there counts in full.
    """
    if cut is None or epoch > cut.epoch:
        return row
    if epoch < cut.epoch:
        return row.scaled(cut.factor).shifted(cut.jump)
    past = cut.base.scaled(cut.factor).shifted(cut.jump)
    left = row.plus(cut.base, -1.0).plus(past)
    return left if are_possible(left) else row


def are_possible(moments: Moments) -> bool:
    """Whether some observations have these sums: no negative weight, no negative variance.

    Every comparison is one that fails for nan.
    """
    n, w, wy, wyy = moments.n, moments.w, moments.wy, moments.wyy
    if not (-_ROUNDING <= n <= _MOST and 0.0 <= w <= _HEAVIEST * n + _ROUNDING):
        return False
    if 0.0 < w < _LIGHTEST:  # nothing can be divided by it
        return False
    if not (abs(wy) <= _BEYOND * w and abs(wyy) <= _BEYOND * _BEYOND * w):
        return False
    return wy * wy <= w * wyy * (1.0 + _ROUNDING) + _ROUNDING
