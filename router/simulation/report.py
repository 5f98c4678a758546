"""All profiles of a file: the figures, whether they meet the bar, and a plot."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from router.simulation.cells import ProfileResult, simulate_profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from router.simulation.profiles import Profile

MEDIAN_VS_ORACLE: Final = 0.993
WORST_VS_ORACLE: Final = 0.97
WORST_VS_SINGLE: Final = 0.985
USUAL_VS_SINGLE: Final = 0.99
USUAL_SHARE: Final = 0.9
RECOVERY: Final = 60
BUDGET: Final = 0.02
FLIPS: Final = 1.05
"""The bar of the policy design; recovery in requests of the changed cell. Where another arm than
the best single one gains more than FLIPS in a cell, routing must beat the single arm."""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the bar, and the profile it is worst on."""

    quantity: str
    value: float
    must: float
    met: bool
    worst: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        value = None if math.isinf(self.value) else round(self.value, 5)
        return {
            "quantity": self.quantity,
            "value": value,
            "must": self.must,
            "met": self.met,
            "worst": self.worst,
        }


def simulate_all(
    profiles: Sequence[Profile], requests: int, seeds: int, jobs: int = 1
) -> Iterator[ProfileResult]:
    """Every usable profile, in order, as it is done."""
    usable = [profile for profile in profiles if profile.usable]
    one = partial(simulate_profile, requests=requests, seeds=seeds)
    if jobs <= 1:
        yield from map(one, usable)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, usable)


def checks(results: Sequence[ProfileResult]) -> tuple[Check, ...]:
    """The bar's rows with what was reached."""
    single = [r.vs_best_single for r in results]
    usual = sum(value >= USUAL_VS_SINGLE for value in single) / len(single)
    oracle, alone = _lowest(results, "vs_oracle"), _lowest(results, "vs_best_single")
    slow = max(results, key=_recovery)
    spender = max(results, key=lambda r: r.exploration_share)
    spent = spender.exploration_share
    rows = [
        at_least("median vs oracle", median(r.vs_oracle for r in results), MEDIAN_VS_ORACLE),
        at_least("worst vs oracle", oracle.vs_oracle, WORST_VS_ORACLE, oracle.profile),
        at_least("worst vs best single arm", min(single), WORST_VS_SINGLE, alone.profile),
        at_least("share of profiles at 0.99 of the best single arm", usual, USUAL_SHARE),
        at_most("requests to recover, slowest", _recovery(slow), RECOVERY, slow.profile),
        at_most("exploration share, highest", spent, BUDGET, spender.profile),
    ]
    flipping = [r for r in results if r.flips > FLIPS]
    if flipping:
        low = _lowest(flipping, "vs_best_single")
        name = "vs best single arm where another one wins a cell by 5 %, worst"
        rows.insert(4, at_least(name, low.vs_best_single, 1.0, low.profile))
    return tuple(rows)


def missed_by(result: ProfileResult) -> list[str]:
    """The rows of the bar that this profile alone misses."""
    return [check.quantity for check in checks([result]) if not check.met]


def as_dict(results: Sequence[ProfileResult]) -> dict[str, Any]:
    """The object of `simulate --json`."""
    return {
        "profiles": [result.as_dict() | {"missed": missed_by(result)} for result in results],
        "worst_vs_oracle": round(min(r.vs_oracle for r in results), 5),
        "median_vs_oracle": round(median(r.vs_oracle for r in results), 5),
        "worst_vs_best_single": round(min(r.vs_best_single for r in results), 5),
        "checks": [check.as_dict() for check in checks(results)],
    }


def plot(results: Iterable[ProfileResult], path: Path) -> None:
    """Both ratios of every profile as a PNG.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = sorted(results, key=lambda r: r.vs_oracle)
    figure = Figure(figsize=(9, 0.22 * len(rows) + 1.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    heights = range(len(rows))
    axes.scatter([r.vs_oracle for r in rows], heights, label="against the oracle", s=18)
    axes.scatter(
        [r.vs_best_single for r in rows], heights, label="against the best single arm", s=18
    )
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_yticks(list(heights), [r.profile for r in rows], fontsize=7)
    axes.set_xlabel("the other's time over ours")
    axes.legend(loc="lower right")
    figure.savefig(path, format="png", dpi=130)


def _recovery(result: ProfileResult) -> float:
    return float("inf") if result.recovery_requests is None else float(result.recovery_requests)


def _lowest(results: Sequence[ProfileResult], field: str) -> ProfileResult:
    return min(results, key=lambda r: float(getattr(r, field)))


def at_least(quantity: str, value: float, must: float, worst: str = "") -> Check:
    """A row that must reach so much."""
    return Check(quantity, value, must, value >= must, worst)


def at_most(quantity: str, value: float, must: float, worst: str = "") -> Check:
    """A row that must not exceed so much."""
    return Check(quantity, value, must, value <= must, worst)
