"""What should be changed, as facts with figures; the words are `router.dashboard.words`'. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from router.dashboard.figures import (
    CLASSES,
    DAY_S,
    PLAIN,
    drill_down,
    matrix,
    overview,
    served,
)
from router.dashboard.trends import drift
from router.telemetry.speedups import MIN_ANSWERS
from workers.state import WorkerState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from router.dashboard.figures import MatrixCell, Snapshot

IDLE_SHARE: Final = 0.01
MIN_REQUESTS: Final = 200
"""Fewer requests a day do not show that a worker is not needed."""

QUEUE_SHARE: Final = 0.1
_BROKEN: Final = (WorkerState.DEGRADED, WorkerState.QUARANTINED, WorkerState.FAILED)


@dataclass(frozen=True, slots=True)
class Advice:
    """One sentence: `key` names it, `values` fill it; `level` is good, note or warn."""

    level: str
    key: str
    values: Mapping[str, Any]


def advise(snapshot: Snapshot) -> list[Advice]:
    """Warnings first."""
    found = [*_workers(snapshot), *_queue(snapshot), *_drift(snapshot)]
    for model in snapshot.models:
        found += _model(snapshot, model)
        found += _idle(snapshot, model)
    order = {"warn": 0, "note": 1, "good": 2}
    return sorted(found, key=lambda item: order[item.level])


def _workers(snapshot: Snapshot) -> Iterator[Advice]:
    for record in snapshot.records:
        if record.state in _BROKEN:
            values = {"worker": record.name, "state": record.state.value, "reason": record.reason}
            yield Advice("warn", "advice_worker", values)


def _queue(snapshot: Snapshot) -> Iterator[Advice]:
    figures = overview(snapshot, DAY_S)
    if figures.queue_share is not None and figures.queue_share > QUEUE_SHARE:
        yield Advice("warn", "advice_queue", {"share": figures.queue_share})


def _drift(snapshot: Snapshot) -> Iterator[Advice]:
    found = drift(snapshot)
    if found.level == "much":
        yield Advice("note", "advice_drift", {"psi": found.psi})


def _model(snapshot: Snapshot, model: str) -> Iterator[Advice]:
    for row in matrix(snapshot, model):
        measured = [c for c in row if c.row is not None and c.mode != PLAIN]
        for cell in measured:
            yield from _cell(snapshot, model, cell)
        yield from _best(model, measured)
    yield from _baseline(snapshot, model)


def _cell(snapshot: Snapshot, model: str, cell: MatrixCell) -> Iterator[Advice]:
    """A mode that loses everywhere, or from some occupancy on."""
    row = cell.row
    if row is None or row.speedup is None or row.ci_high is None:
        return
    common = {"model": model, "class": cell.workload_class, "mode": cell.mode}
    figures = {"speedup": row.speedup, "low": row.ci_low, "high": row.ci_high, "n": row.n}
    if row.ci_high < 1.0:
        yield Advice("warn", "advice_loss", common | figures | {"share": cell.share})
        return
    for part in drill_down(snapshot, model, cell.workload_class, cell.mode, "occupancy"):
        c, bucket = part.compared, int(part.value)
        if bucket and c.high is not None and c.high < 1.0:
            above = 2 ** (bucket - 1)
            values = {"speedup": c.ratio, "low": c.low, "high": c.high, "n": c.n, "above": above}
            yield Advice("warn", "advice_loss_above", common | values)
            return


def _best(model: str, measured: list[MatrixCell]) -> Iterator[Advice]:
    """The surest gain: the mode whose interval ends highest above AR; is it the fastest, too?"""
    gains = [
        (c.row.ci_low, c) for c in measured if c.row is not None and (c.row.ci_low or 0.0) > 1.0
    ]
    if not gains:
        return
    _, cell = max(gains, key=lambda pair: pair[0] or 0.0)
    row = cell.row
    if row is not None:
        values = {"speedup": row.speedup, "low": row.ci_low, "high": row.ci_high, "n": row.n}
        names = {"model": model, "class": cell.workload_class, "mode": cell.mode}
        fastest = max((c.row.speedup or 0.0) for c in measured if c.row is not None)
        key = "advice_best" if row.speedup == fastest else "advice_surest"
        yield Advice("good", key, names | values)


def _baseline(snapshot: Snapshot, model: str) -> Iterator[Advice]:
    rows = [s for s in snapshot.speedups if s.model == model]
    if not any(s.mode != PLAIN for s in rows):
        return
    plain = sum(s.n for s in rows if s.mode == PLAIN)
    if plain < MIN_ANSWERS:
        values = {"model": model, "n": plain, "missing": MIN_ANSWERS - plain}
        yield Advice("note", "advice_baseline", values)


def _idle(snapshot: Snapshot, model: str) -> Iterator[Advice]:
    """A mode that gets next to nothing of a day's traffic."""
    by_mode: dict[str, float] = {}
    for series, sums in served(snapshot, model).items():
        if series.workload_class in CLASSES:
            by_mode[series.mode] = by_mode.get(series.mode, 0.0) + sums.get("requests", 0.0)
    total = sum(by_mode.values())
    if total < MIN_REQUESTS:
        return
    for record in snapshot.records:
        modes = {record.effective_mode, *(arm.mode for arm in record.arms)}
        share = sum(by_mode.get(mode, 0.0) for mode in modes) / total
        if record.model == model and record.state.serves and share < IDLE_SHARE:
            values = {"worker": record.name, "mode": record.effective_mode, "share": share}
            yield Advice("note", "advice_idle", values | {"requests": total})
