"""All profiles of a file: the figures, whether they meet the bar, and a plot."""

from __future__ import annotations

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
"""The bar of the policy design; recovery in requests of the changed cell."""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the bar."""

    quantity: str
    value: float
    must: float
    met: bool


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
    oracle = [r.vs_oracle for r in results]
    single = [r.vs_best_single for r in results]
    usual = sum(value >= USUAL_VS_SINGLE for value in single) / len(single)
    slowest = max((_recovery(r) for r in results), default=0.0)
    spent = max(r.exploration_share for r in results)
    return (
        _at_least("median vs oracle", median(oracle), MEDIAN_VS_ORACLE),
        _at_least("worst vs oracle", min(oracle), WORST_VS_ORACLE),
        _at_least("worst vs best single arm", min(single), WORST_VS_SINGLE),
        _at_least("share of profiles at 0.99 of the best single arm", usual, USUAL_SHARE),
        Check("requests to recover, slowest", slowest, RECOVERY, slowest <= RECOVERY),
        Check("exploration share, highest", spent, BUDGET, spent <= BUDGET),
    )


def as_dict(results: Sequence[ProfileResult]) -> dict[str, Any]:
    """The object of `simulate --json`."""
    return {
        "profiles": [result.as_dict() for result in results],
        "worst_vs_oracle": round(min(r.vs_oracle for r in results), 5),
        "median_vs_oracle": round(median(r.vs_oracle for r in results), 5),
        "worst_vs_best_single": round(min(r.vs_best_single for r in results), 5),
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


def _at_least(quantity: str, value: float, must: float) -> Check:
    return Check(quantity, value, must, value >= must)
