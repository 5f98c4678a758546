"""Whether forecasts kept what they promised: the 90 % intervals of a decision log, held to account.

Every forecast of a log was made before its answer was known, so all of them are held out.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from router.core import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from router.simulation.logged import Logged


@dataclass(frozen=True, slots=True)
class Coverage:
    """`coverage` is the share of answers within their interval; `half_width` the median of half an
    interval over its middle; `above` the share that took longer than the interval says."""

    n: int
    coverage: float
    half_width: float
    above: float

    def as_dict(self) -> dict[str, float]:
        """For `--json`."""
        return {
            "n": self.n,
            "coverage": round(self.coverage, 4),
            "median_half_width": round(self.half_width, 4),
            "above": round(self.above, 4),
        }


def coverage(rows: Iterable[Logged]) -> Coverage | None:
    """The 90 % intervals of the chosen workers against the seconds from the choice to the end.

    Answers that ended as they should, at the first attempt, count; None if there are none.
    """
    inside = above = 0
    widths = []
    for row in rows:
        interval = _interval(row)
        if interval is None or row.outcome.status is not Status.OK:
            continue
        low, high = interval
        seconds = row.outcome.total_s - (row.outcome.queue_s or 0.0)
        inside += low <= seconds <= high
        above += seconds > high
        widths.append((high - low) / (high + low))
    if not widths:
        return None
    return Coverage(len(widths), inside / len(widths), median(widths), above / len(widths))


def _interval(row: Logged) -> tuple[float, float] | None:
    decision = row.decision
    if decision is None or row.outcome.retried:
        return None
    chosen = (decision.worker, decision.mode)
    for candidate in decision.candidates:
        if (candidate.worker, candidate.mode) == chosen and candidate.interval_s is not None:
            low, high = candidate.interval_s
            if low is not None and high is not None and high > low:
                return low, high
            return None
    return None
