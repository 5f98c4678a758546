"""Every figure that the pages show, from one Snapshot; pure.

Speed-ups come from `router.telemetry.speedups`, the one source that /metrics and /ops/classes use.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from router.telemetry.history import Series, Slice, Sums, merged, ttft_quantile
from router.telemetry.metrics import NONE
from router.telemetry.speedups import Comparison, Speedup, Stratum, compare
from router.telemetry.stats import Moments

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from router.telemetry.history_store import Entry, SliceSums
    from router.telemetry.levels import Arm, Text
    from workers.record import WorkerRecord

CLASSES: Final = ("structured", "prose", "reasoning")
PLAIN: Final = "ar"
FAILED: Final = ("upstream_error", "timeout", "shed")
DAY_S: Final = 86_400


class MeasuredCell(NamedTuple):
    """What one learned cell knows of ln(decode speed)."""

    arm: Arm
    text: Text
    occupancy: int
    moments: Moments


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything as read from Redis at one instant. Times are Unix seconds."""

    at: float
    records: Sequence[WorkerRecord] = ()
    gateways: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    speedups: Sequence[Speedup] = ()
    cells: Sequence[MeasuredCell] = ()
    slices: Mapping[Slice, SliceSums] = field(default_factory=dict)
    decisions: Sequence[Entry] = ()  # the newest first
    happenings: Sequence[Entry] = ()
    trouble: str = ""  # why Redis could not be read; the figures are then those of `at`

    @property
    def models(self) -> list[str]:
        """Every model with a worker or traffic."""
        names = {record.model for record in self.records}
        names |= {row.model for row in self.speedups}
        names |= {s.model for sums in self.slices.values() for s in sums if s.model != NONE}
        return sorted(names)

    def modes(self, model: str) -> list[str]:
        """Modes of a model: plain decoding first."""
        names = {m for r in self.records if r.model == model for m in (r.mode, r.effective_mode)}
        names |= {row.mode for row in self.speedups if row.model == model}
        return sorted(names, key=lambda name: (name != PLAIN, name))

    def seen(self, model: str) -> set[str]:
        """Modes that have served the model, also those of workers that are gone."""
        found = {s.mode for sums in self.slices.values() for s in sums if s.model == model}
        return found - {NONE}

    def window(self, seconds: float) -> list[tuple[Slice, SliceSums]]:
        """Slices of the last `seconds`, oldest first, in the finest width that reaches back."""
        width = 60 if seconds <= 3 * 3600 else 600
        oldest = int((self.at - seconds) // width)
        found = [(s, sums) for s, sums in self.slices.items() if s.width == width]
        return sorted((s, sums) for s, sums in found if s.number > oldest)

    def sums(self, seconds: float) -> dict[Series, Sums]:
        """Sums of the last `seconds` by series."""
        rows: dict[Series, list[Sums]] = defaultdict(list)
        for _, by_series in self.window(seconds):
            for series, sums in by_series.items():
                rows[series].append(sums)
        return {series: merged(parts) for series, parts in rows.items()}


@dataclass(frozen=True, slots=True)
class Overview:
    """The figures of a window of `seconds`."""

    seconds: float
    requests: float
    per_second: float
    goodput: float  # tokens per second of answers that were finished
    ttft_p50: float | None
    ttft_p99: float | None
    failed_share: float | None
    waiting: int
    in_flight: int
    slots: int
    queue_share: float | None  # of the time that requests took


def overview(snapshot: Snapshot, seconds: float) -> Overview:
    """Rates and percentiles of the last `seconds` and what is true now."""
    total = merged(snapshot.sums(seconds).values())
    span = _span(snapshot, seconds)
    requests, took = total.get("requests", 0.0), total.get("total_s", 0.0)
    failed = sum(total.get(f"requests_{status}", 0.0) for status in FAILED)
    gateways = snapshot.gateways.values()
    return Overview(
        seconds=seconds,
        requests=requests,
        per_second=requests / span,
        goodput=total.get("good_n", 0.0) / span,
        ttft_p50=ttft_quantile(total, 0.5),
        ttft_p99=ttft_quantile(total, 0.99),
        failed_share=failed / requests if requests else None,
        waiting=sum(sum(g.get("queue", {}).values()) for g in gateways),
        in_flight=sum(in_flight(snapshot, record.name) for record in snapshot.records),
        slots=sum(record.slots for record in snapshot.records if record.state.serves),
        queue_share=total.get("queue_s", 0.0) / took if took else None,
    )


def _span(snapshot: Snapshot, seconds: float) -> float:
    """Seconds that the window's slices cover up to now."""
    window = snapshot.window(seconds)
    return max(1.0, snapshot.at - window[0][0].start) if window else seconds


def in_flight(snapshot: Snapshot, worker: str) -> int:
    """Requests on a worker: each gateway tells what it has heard of all, the others' included."""
    told = (int(g.get("inflight", {}).get(worker, 0)) for g in snapshot.gateways.values())
    return max(told, default=0)


@dataclass(frozen=True, slots=True)
class Saved:
    """Seconds of decoding saved in a window; None where the speed-ups are not measured yet.

    `covered` is the share of decoding time whose mode was measured against AR.
    """

    against_plain: float | None
    low: float | None
    high: float | None
    against_best: float | None
    best: str
    covered: float


def saved(snapshot: Snapshot, seconds: float) -> Saved:
    """What routing saved, by the measured speed-ups: time x (speed-up - 1), summed over series."""
    table = {(s.model, s.workload_class, s.mode): s for s in snapshot.speedups}
    spent = {k: v.get("decode_ms", 0.0) / 1000 for k, v in snapshot.sums(seconds).items()}
    spent = {k: v for k, v in spent.items() if v > 0}
    known = {k: v for k, v in spent.items() if _factor(table, k) is not None}
    covered = sum(known.values()) / sum(spent.values()) if spent else 0.0
    if not known:
        return Saved(None, None, None, None, "", covered)
    gains = [
        sum(
            v * (bound - 1)
            for k, v in known.items()
            if (bound := _factor(table, k, end)) is not None
        )
        for end in ("speedup", "ci_low", "ci_high")
    ]
    best, instead = _best_single(table, known)
    against_best = None if instead is None else instead - sum(known.values())
    return Saved(gains[0], gains[1], gains[2], against_best, best, covered)


Table = dict[tuple[str, str, str], Speedup]


def _factor(table: Table, key: tuple[str, str, str], end: str = "speedup") -> float | None:
    if key[2] == PLAIN:
        return 1.0
    row = table.get(key)
    value = getattr(row, end) if row is not None else None
    return None if value is None else float(value)


def _best_single(table: Table, known: Mapping[Series, float]) -> tuple[str, float | None]:
    """The mode per model that alone would have taken the least time; measured where it counts."""
    names, total = [], 0.0
    for model in sorted({series.model for series in known}):
        own = {series: s for series, s in known.items() if series.model == model}
        modes = {PLAIN} | {mode for m, _, mode in table if m == model}
        times = {mode: _time_in(table, own, mode) for mode in modes}
        possible = {mode: t for mode, t in times.items() if t is not None}
        name = min(possible, key=lambda mode: (possible[mode], mode))
        names.append(name)
        total += possible[name]
    return ", ".join(dict.fromkeys(names)), total


def _time_in(table: Table, known: Mapping[Series, float], mode: str) -> float | None:
    """Seconds that the same tokens would have taken in one mode."""
    total = 0.0
    for series, seconds in known.items():
        was = _factor(table, series)
        would = _factor(table, (series.model, series.workload_class, mode))
        if was is None or would is None:
            return None
        total += seconds * was / would
    return total


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One class in one mode; unknown is None."""

    workload_class: str
    mode: str
    row: Speedup | None
    mean_length: float | None
    share: float | None  # of the class's requests that a worker served in the last day
    requests: float


def served(snapshot: Snapshot, model: str) -> dict[Series, Sums]:
    """The last day of a model without the requests that reached no worker: shares are of these."""
    sums = snapshot.sums(DAY_S)
    return {k: v for k, v in sums.items() if k.model == model and k.mode != NONE}


def shares(snapshot: Snapshot, model: str) -> dict[str, dict[str, float]]:
    """By class and mode, plain decoding first; whatever served, so that they add up to 1."""
    sums = served(snapshot, model)
    found: dict[str, dict[str, float]] = {}
    for name in CLASSES:
        own = {k.mode: v.get("requests", 0.0) for k, v in sums.items() if k.workload_class == name}
        total = sum(own.values())
        modes = sorted(own, key=lambda mode: (mode != PLAIN, mode))
        found[name] = {mode: own[mode] / total for mode in modes if own[mode]}
    return found


def matrix(snapshot: Snapshot, model: str) -> list[list[MatrixCell]]:
    """Classes x modes."""
    table = {(s.workload_class, s.mode): s for s in snapshot.speedups if s.model == model}
    sums = served(snapshot, model)
    rows = []
    for name in CLASSES:
        total = sum(v.get("requests", 0.0) for k, v in sums.items() if k.workload_class == name)
        rows.append(
            [
                _matrix_cell(name, mode, table.get((name, mode)), sums, total)
                for mode in snapshot.modes(model)
            ]
        )
    return rows


def _matrix_cell(
    name: str, mode: str, row: Speedup | None, sums: Mapping[Series, Sums], total: float
) -> MatrixCell:
    own = merged(v for k, v in sums.items() if (k.workload_class, k.mode) == (name, mode))
    steps, requests = own.get("steps", 0.0), own.get("requests", 0.0)
    # Slices count answers of a few words too, from which no speed is learned.
    length = own.get("decoded_n", 0.0) / steps if steps and row is not None else None
    return MatrixCell(name, mode, row, length, requests / total if total else None, requests)


@dataclass(frozen=True, slots=True)
class Part:
    """A row of the drill-down: one value of one dimension."""

    value: str
    n: float
    decode_tps: float
    compared: Comparison


DIMENSIONS: Final[Mapping[str, Callable[[MeasuredCell], Hashable]]] = {
    "context": lambda cell: cell.text.context,
    "occupancy": lambda cell: cell.occupancy,
    "language": lambda cell: cell.text.language,
    "thinking": lambda cell: cell.text.thinking,
    "kind": lambda cell: cell.text.kind,
}


def drill_down(snapshot: Snapshot, model: str, name: str, mode: str, dimension: str) -> list[Part]:
    """A class in a mode by one dimension, each against AR in the same conditions."""
    own: dict[Hashable, list[MeasuredCell]] = defaultdict(list)
    plain: list[MeasuredCell] = []
    for cell in snapshot.cells:
        if cell.arm.model != model:
            continue
        if cell.arm.mode == PLAIN:
            plain.append(cell)
        if (cell.text.workload_class, cell.arm.mode) == (name, mode):
            own[DIMENSIONS[dimension](cell)].append(cell)
    baseline = _strata(plain)
    return [_part(str(value), own[value], baseline) for value in sorted(own, key=str)]


def _part(value: str, cells: list[MeasuredCell], plain: Mapping[Stratum, Moments]) -> Part:
    strata = _strata(cells)
    whole = Moments()
    for moments in strata.values():
        whole = whole.plus(moments)
    return Part(value, whole.n, math.exp(whole.wy / whole.w), compare(strata, plain))


def _strata(cells: Iterable[MeasuredCell]) -> dict[Stratum, Moments]:
    strata: dict[Stratum, Moments] = {}
    for cell in cells:
        stratum = Stratum(cell.text.context, cell.text.image, cell.occupancy)
        strata[stratum] = strata.get(stratum, Moments()).plus(cell.moments)
    return strata
