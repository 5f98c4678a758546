"""Speed-ups of each mode over AR with their confidence: one source for metrics, ops and dashboard.

A speed-up is the ratio of geometric mean decode speeds in the same context and occupancy cells.
AR drafts nothing, so its speed does not depend on the class: it is pooled over classes. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from router.telemetry.stats import Moments
from router.telemetry.store.base import TotalName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from router.telemetry.speeds import SpeedModel

MIN_ANSWERS: Final = 20
"""Fewer answers on either side are "not measured"."""

_Z95: Final = 1.959964
_PLAIN: Final = "ar"


class Stratum(NamedTuple):
    """Like conditions: only within one are speeds compared."""

    context: int
    image: bool
    occupancy: int


Strata = dict[Stratum, Moments]


@dataclass(frozen=True, slots=True)
class Speedup:
    """One mode's figure for a class. `speedup` and its interval are None where not measured."""

    model: str
    workload_class: str
    mode: str
    n: float  # answers of this mode
    n_plain: float  # AR answers in the same conditions
    decode_tps: float  # geometric mean, tokens per second
    speedup: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    acceptance: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The row of `GET /ops/summary`."""
        return {
            "mode": self.mode,
            "speedup": self.speedup,
            "ci_low": self.ci_low,
            "ci_high": self.ci_high,
            "n": round(self.n),
            "acceptance": self.acceptance,
            "decode_tps": self.decode_tps,
        }


def speedups(
    speeds: SpeedModel, totals: Mapping[TotalName, Mapping[str, float]] | None = None
) -> tuple[Speedup, ...]:
    """Every (model, class, mode) that was measured, in a stable order.

    `totals` are the store's plain sums; where given they tell the acceptance rates.
    """
    rows, plain = _collect(speeds)
    found = []
    for (model, name, mode), strata in sorted(rows.items()):
        row = _compare(strata, plain.get(model, {}), same=mode == _PLAIN)
        whole = _sum(strata.values())
        found.append(
            Speedup(
                model=model,
                workload_class=name,
                mode=mode,
                n=whole.n,
                n_plain=row.n_plain,
                decode_tps=math.exp(whole.wy / whole.w),
                speedup=row.ratio,
                ci_low=row.low,
                ci_high=row.high,
                acceptance=_acceptance(totals, model, name, mode),
            )
        )
    return tuple(found)


class Comparison(NamedTuple):
    """The ratio of two sides over the strata that both have; None below MIN_ANSWERS."""

    n: float
    n_plain: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def compare(mode: Mapping[Stratum, Moments], plain: Mapping[Stratum, Moments]) -> Comparison:
    """Geometric mean ratio with its 95 % interval, strata weighted by what they can tell."""
    both = [(mode[g], plain[g]) for g in mode if g in plain and mode[g].w > 0 and plain[g].w > 0]
    n, n_plain = sum(a.n for a, _ in both), sum(b.n for _, b in both)
    if n < MIN_ANSWERS or n_plain < MIN_ANSWERS:
        return Comparison(n, n_plain)
    spread, spread_plain = _variance([a for a, _ in both]), _variance([b for _, b in both])
    precision = pulled = 0.0
    for a, b in both:
        weight = 1.0 / (spread / a.n + spread_plain / b.n)
        precision += weight
        pulled += weight * (a.wy / a.w - b.wy / b.w)
    reach = _t95(n + n_plain - 2 * len(both)) / math.sqrt(precision)
    middle = pulled / precision
    ends = (math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))
    return Comparison(n, n_plain, *ends)


def _compare(strata: Strata, plain: Strata, *, same: bool) -> Comparison:
    if same:
        n = _sum(strata.values()).n
        return Comparison(n, n, 1.0, 1.0, 1.0) if n >= MIN_ANSWERS else Comparison(n, n)
    return compare(strata, plain)


def _collect(
    speeds: SpeedModel,
) -> tuple[dict[tuple[str, str, str], Strata], dict[str, Strata]]:
    rows: dict[tuple[str, str, str], Strata] = defaultdict(dict)
    plain: dict[str, Strata] = defaultdict(dict)
    for arm, text, occupancy, moments in speeds.measured():
        stratum = Stratum(text.context, text.image, occupancy)
        _merge(rows[arm.model, text.workload_class, arm.mode], stratum, moments)
        if arm.mode == _PLAIN:
            _merge(plain[arm.model], stratum, moments)
    return rows, plain


def _merge(strata: Strata, stratum: Stratum, moments: Moments) -> None:
    strata[stratum] = strata.get(stratum, Moments()).plus(moments)


def _sum(all_moments: Iterable[Moments]) -> Moments:
    total = Moments()
    for moments in all_moments:
        total = total.plus(moments)
    return total


def _variance(groups: list[Moments]) -> float:
    """Variance of one answer's ln speed within strata, pooled over them."""
    squares = freedom = 0.0
    for m in groups:
        within = max(0.0, m.wyy / m.w - (m.wy / m.w) ** 2)
        squares += m.n * within
        freedom += m.n - 1.0
    return max(squares / max(freedom, 1.0), 1e-8)


def _t95(freedom: float) -> float:
    """The 97.5 % point of Student's t (Cornish-Fisher; exact to 0.001 from 10 degrees on)."""
    z, v = _Z95, max(freedom, 2.0)
    return z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v * v)


def _acceptance(
    totals: Mapping[TotalName, Mapping[str, float]] | None, model: str, name: str, mode: str
) -> float | None:
    sums = (totals or {}).get(TotalName(model, name, mode), {})
    drafted = sums.get("draft_n", 0.0)
    return sums.get("draft_n_accepted", 0.0) / drafted if drafted else None
