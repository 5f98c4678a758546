"""Sums per time slice, model, class and mode: what time lines are drawn of; pure.

Slices of one minute are kept for hours and slices of ten minutes for days, so that a day is a few
hundred hashes and not a million rows. Counterpart: `router.telemetry.history_store`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from router.core.outcome import Status
from router.telemetry.metrics import NONE, TTFT_BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from router.core import Outcome

SLICES: Final[Mapping[int, int]] = {60: 4 * 3600, 600: 8 * 86400}
"""Width of a slice in seconds, and how long it is kept."""

MAX_PENDING: Final = 20_000
"""Sums that may wait for Redis: some hundred series over two hours."""

_TTFT: Final = "ttft:"


class Series(NamedTuple):
    """What sums are kept by."""

    model: str
    workload_class: str
    mode: str


class Slice(NamedTuple):
    """One span of time: `number` * `width` seconds since the Unix epoch is its begin."""

    width: int
    number: int

    @property
    def start(self) -> int:
        """Unix seconds."""
        return self.width * self.number


Sums = dict[str, float]
Amount = tuple[str, float]
_CONFIDENCE_NAMES: Final = [f"confidence:{tenth}" for tenth in range(10)]
_TTFT_NAMES: Final = [f"{_TTFT}{bucket}" for bucket in range(len(TTFT_BOUNDS) + 1)]


_MINUTE: Final = min(SLICES)  # what is counted by; the other widths are multiples of it


class Book:
    """Sums not yet stored; bounded, and what does not fit is counted in `shed`."""

    def __init__(self) -> None:
        self._minutes: dict[tuple[int, Series], Sums] = {}
        self.shed = 0

    def add(self, outcome: Outcome) -> None:
        """Count one finished request."""
        key = int(outcome.wall_time // _MINUTE), series_of(outcome)
        sums = self._minutes.get(key)
        if sums is None:
            if len(self._minutes) >= MAX_PENDING:
                self.shed += 1
                return
            sums = self._minutes[key] = {}
        for name, amount in amounts_of(outcome):
            sums[name] = sums.get(name, 0) + amount

    @property
    def slices(self) -> dict[tuple[Slice, Series], Sums]:
        """The sums in every width; made when asked for."""
        found: dict[tuple[Slice, Series], Sums] = {}
        for (minute, series), sums in self._minutes.items():
            for width in SLICES:
                at = Slice(width, minute * _MINUTE // width)
                total = found.setdefault((at, series), {})
                for name, amount in sums.items():
                    total[name] = total.get(name, 0) + amount
        return found


def series_of(outcome: Outcome) -> Series:
    """The labels of the metrics, so that both can be compared."""
    what = outcome.classification
    name = str(what.workload_class) if what is not None else NONE
    return Series(outcome.model, name, outcome.mode or NONE)


def amounts_of(outcome: Outcome) -> list[Amount]:
    """Fields and amounts of one request; what is unknown adds nothing."""
    what, decision, status = outcome.classification, outcome.decision, outcome.status
    rows: list[Amount] = [("requests", 1), (_named("requests_", status), 1)]
    if what is not None:
        confidence = max(what.probabilities.values(), default=0.0)
        rows += (("classified", 1), ("confidence", confidence), (_named("source:", what.source), 1))
        rows.append((_CONFIDENCE_NAMES[min(9, int(10 * confidence))], 1))
    if decision is not None:
        rows.append((_named("reason:", decision.reason), 1))
        if decision.explored:
            rows.append(("explored", 1))
    if status is not Status.SHED:
        rows += (("total_s", outcome.total_s), ("queue_s", outcome.queue_s))
        if outcome.ttft_s is not None:
            rows.append((_TTFT_NAMES[bisect_left(TTFT_BOUNDS, outcome.ttft_s)], 1))
        _add_tokens(outcome, rows)
    return rows


@lru_cache(maxsize=64)
def _named(prefix: str, value: str) -> str:
    """The field of one of few values: made once."""
    return f"{prefix}{value}"


def _add_tokens(outcome: Outcome, rows: list[Amount]) -> None:
    t, n = outcome.timings, outcome.generated
    if n is not None:
        rows.append(("predicted_n", n))
        if outcome.status is Status.OK:
            rows.append(("good_n", n))
    if t.draft_n is not None and t.draft_n_accepted is not None:
        rows += (("draft_n", t.draft_n), ("draft_n_accepted", t.draft_n_accepted))
    speed = t.decode_tokens_per_second
    if speed and t.predicted_n and t.predicted_ms:
        rows += (("decoded_n", t.predicted_n - 1), ("decode_ms", t.predicted_ms))
        rows += (("steps", t.steps or 0), ("ln_speed", math.log(speed)), ("answers", 1))


def merged(rows: Iterable[Mapping[str, float]]) -> Sums:
    """The sum of sums."""
    total: Sums = {}
    for row in rows:
        for name, amount in row.items():
            total[name] = total.get(name, 0) + amount
    return total


def ttft_quantile(sums: Mapping[str, float], q: float) -> float | None:
    """Seconds, by linear interpolation within a bucket as Prometheus' histogram_quantile does."""
    counts = [sums.get(f"{_TTFT}{i}", 0.0) for i in range(len(TTFT_BOUNDS) + 1)]
    total = sum(counts)
    if not total:
        return None
    rank, below = q * total, 0.0
    for i, count in enumerate(counts[:-1]):
        if count and below + count >= rank:
            low = TTFT_BOUNDS[i - 1] if i else 0.0
            return low + (TTFT_BOUNDS[i] - low) * (rank - below) / count
        below += count
    return TTFT_BOUNDS[-1]
