"""Sums per time slice, model, class and mode: what time lines are drawn of; pure.

Slices of one minute are kept for hours and slices of ten minutes for days, so that a day is a few
hundred hashes and not a million rows. Counterpart: `router.telemetry.history_store`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from router.core.outcome import Status
from router.telemetry.metrics import NONE, TTFT_BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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


def amounts_of(outcome: Outcome) -> Iterator[tuple[str, float]]:
    """Fields and amounts of one request; what is unknown adds nothing."""
    yield "requests", 1
    yield f"requests_{outcome.status.value}", 1
    yield from _decision(outcome)
    if outcome.status is Status.SHED:
        return
    yield "total_s", outcome.total_s
    yield "queue_s", outcome.queue_s
    if outcome.ttft_s is not None:
        yield f"{_TTFT}{bisect_left(TTFT_BOUNDS, outcome.ttft_s)}", 1
    yield from _tokens(outcome)


def _decision(outcome: Outcome) -> Iterator[tuple[str, float]]:
    what, decision = outcome.classification, outcome.decision
    if what is not None:
        confidence = max(what.probabilities.values(), default=0.0)
        yield "classified", 1
        yield "confidence", confidence
        yield f"confidence:{min(9, int(10 * confidence))}", 1
        yield f"source:{what.source}", 1
    if decision is not None:
        yield f"reason:{decision.reason.value}", 1
        if decision.explored:
            yield "explored", 1


def _tokens(outcome: Outcome) -> Iterator[tuple[str, float]]:
    t = outcome.timings
    if t.predicted_n is not None:
        yield "predicted_n", t.predicted_n
        if outcome.status is Status.OK:
            yield "good_n", t.predicted_n
    if t.draft_n is not None and t.draft_n_accepted is not None:
        yield "draft_n", t.draft_n
        yield "draft_n_accepted", t.draft_n_accepted
    speed, steps = t.decode_tokens_per_second, t.steps
    if speed and steps and t.predicted_n and t.predicted_ms:
        yield "decoded_n", t.predicted_n - 1
        yield "decode_ms", t.predicted_ms
        yield "steps", steps
        yield "ln_speed", math.log(speed)
        yield "answers", 1


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
