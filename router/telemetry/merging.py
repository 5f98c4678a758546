"""Sums of all epochs to the decayed moments that count now; pure.

An epoch fades by `fade` for every later epoch that had traffic, so a quiet weekend forgets nothing.
What time would take beyond a table's `keep` is given back from the older epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.telemetry.stats import Moments
from router.telemetry.store.base import before_cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from router.telemetry.store.base import CellName, SharedStats

_DAY_RANKS: Final = 12
"""A day's roll-up counts as so many epochs of traffic when it fades."""

Cells = dict["CellName", Moments]


class Merger:
    """Keeps the sums of the closed epochs, which seldom change, between two merges."""

    def __init__(self) -> None:
        self._stamp: tuple[object, ...] = ()
        self._faded: Cells = {}
        self._raw: Cells = {}

    def merge(self, shared: SharedStats, fade: float, keep: Mapping[str, float]) -> Cells:
        """The moments that count now, by cell."""
        newest = max(shared.epochs, default=-1)
        self._close(shared, newest, fade)
        merged = dict(self._faded)
        for cell, row in shared.epochs.get(newest, {}).items():
            now = before_cut(row, newest, shared.cuts.get(cell))
            merged[cell] = merged.get(cell, Moments()).plus(now)
        for cell, raw in self._raw.items():
            merged[cell] = _kept(merged[cell], raw, self._faded[cell], keep.get(cell.table, 0.0))
        return merged

    def _close(self, shared: SharedStats, newest: int, fade: float) -> None:
        stamp = (
            newest,
            *((e, id(cells)) for e, cells in shared.epochs.items() if e != newest),
            *((d, id(cells)) for d, cells in shared.days.items()),
            *((c, cut.epoch, cut.base.w, cut.moved) for c, cut in shared.cuts.items()),
        )
        if stamp == self._stamp:
            return
        self._stamp, self._faded, self._raw = stamp, {}, {}
        for weight, epoch, cells in _ranked(shared, newest, fade):
            for cell, row in cells.items():
                past = before_cut(row, epoch, shared.cuts.get(cell))
                self._faded[cell] = self._faded.get(cell, Moments()).plus(past, weight)
                self._raw[cell] = self._raw.get(cell, Moments()).plus(past)


def _ranked(
    shared: SharedStats, newest: int, fade: float
) -> Iterator[tuple[float, int, Mapping[CellName, Moments]]]:
    """Closed epochs from the newest on, with their weights; a day is as old as its first epoch."""
    rank = 0
    for epoch in sorted((e for e in shared.epochs if e != newest), reverse=True):
        rank += 1
        yield fade**rank, epoch, shared.epochs[epoch]
    for day in sorted(shared.days, reverse=True):
        rank += _DAY_RANKS
        yield fade**rank, newest + 1, shared.days[day]  # cuts were applied when it was rolled up


def _kept(now: Moments, raw: Moments, faded: Moments, keep: float) -> Moments:
    lost = raw.w - faded.w
    missing = keep - now.w
    if missing <= 0.0 or lost <= 0.0:
        return now
    share = min(1.0, missing / lost)
    return now.plus(raw, share).plus(faded, -share)
