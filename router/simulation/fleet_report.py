"""A fleet under every policy and in every single mode: figures, JSON, plots."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean, quantiles
from typing import TYPE_CHECKING, Any, Final

from router.policy import PolicySettings, build_policy
from router.policy.baselines import LeastLoaded
from router.simulation.fleet import FleetRun
from router.simulation.fleet_rivals import Oracle, mean_tokens, single_mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from router.policy import Policy
    from router.simulation.fleet import Answered
    from router.simulation.fleet_plan import FleetPlan

POLICIES: Final = ("learned", "least_loaded", "round_robin")
_POINTS: Final = 60  # of a curve over time


@dataclass(frozen=True, slots=True)
class FleetResult:
    """One policy or control on a plan. Seconds; `curve` is (time, mean seconds per request)."""

    name: str
    mean_s: float
    p99_s: float
    ttft_p50_s: float
    tokens_per_s: float
    retries: int
    shares: Mapping[str, Mapping[str, float]]  # class -> mode -> share of its requests
    reasons: Mapping[str, int]
    curve: tuple[tuple[float, float], ...]

    def as_dict(self, best: float | None) -> dict[str, Any]:
        """For `--json`; `best` is the oracle's mean seconds, None where it did not run."""
        return {
            "name": self.name,
            "mean_seconds": round(self.mean_s, 4),
            "p99_seconds": round(self.p99_s, 4),
            "ttft_p50_seconds": round(self.ttft_p50_s, 4),
            "tokens_per_second": round(self.tokens_per_s, 2),
            "vs_oracle": None if best is None else round(best / self.mean_s, 5),
            "retries": self.retries,
            "shares": self.shares,
            "reasons": self.reasons,
        }


def simulate_fleet(plan: FleetPlan, policies: Sequence[str] = POLICIES) -> Iterator[FleetResult]:
    """The oracle, each policy, then each single mode on equal workers, as it is done."""
    yield _result("oracle", _with_oracle(plan).run())
    yield from simulate_policies(plan, policies)
    for mode in dict.fromkeys(worker.mode for worker in plan.workers):
        alone = FleetRun(single_mode(plan, mode), LeastLoaded()).run()
        yield _result(f"all {mode}", alone)


def simulate_policies(plan: FleetPlan, policies: Sequence[str]) -> Iterator[FleetResult]:
    """These policies alone: a big fleet under all its rivals takes a while."""
    for name in policies:
        settings = PolicySettings(seed=plan.seed)
        yield _result(name, FleetRun(plan, build_policy(name, settings)).run())


def _with_oracle(plan: FleetPlan) -> FleetRun:
    run = FleetRun(plan, LeastLoaded())
    oracle: Policy = Oracle(run.machines, mean_tokens(plan))
    run.policy = oracle
    return run


def _result(name: str, run: FleetRun) -> FleetResult:
    rows = run.answers
    return FleetResult(
        name=name,
        mean_s=fmean(row.total_s for row in rows),
        p99_s=_quantile([row.total_s for row in rows], 99),
        ttft_p50_s=_quantile([row.ttft_s for row in rows], 50),
        tokens_per_s=sum(row.tokens for row in rows) / max(row.at for row in rows),
        retries=run.retries,
        shares=_shares(rows),
        reasons=dict(sorted(run.reasons.items())),
        curve=_curve(rows),
    )


def _quantile(values: Sequence[float], percent: int) -> float:
    return quantiles(values, n=100)[percent - 1] if len(values) > 1 else values[0]


def _shares(rows: Sequence[Answered]) -> dict[str, dict[str, float]]:
    counts = Counter((row.workload_class, row.mode) for row in rows)
    totals = Counter(row.workload_class for row in rows)
    out: dict[str, dict[str, float]] = {name: {} for name in sorted(totals)}
    for (name, mode), count in sorted(counts.items()):
        out[name][mode] = round(count / totals[name], 4)
    return out


def _curve(rows: Sequence[Answered]) -> tuple[tuple[float, float], ...]:
    size = max(1, len(rows) // _POINTS)
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    return tuple((part[-1].at, fmean(row.total_s for row in part)) for part in parts)


def fleet_as_dict(plan: FleetPlan, results: Sequence[FleetResult]) -> dict[str, Any]:
    """The object of `simulate --fleet --json`."""
    best = next((r.mean_s for r in results if r.name == "oracle"), None)
    singles = [r.mean_s for r in results if r.name.startswith("all ")]
    ours = next((r.mean_s for r in results if r.name == "learned"), None)
    ratio = round(ours / min(singles), 5) if ours is not None and singles else None
    return {
        "requests": plan.requests,
        "workers": sum(worker.count for worker in plan.workers),
        "results": [result.as_dict(best) for result in results],
        "routed_over_best_single": ratio,
    }


def plot_fleet(results: Sequence[FleetResult], path: Path) -> None:
    """Seconds per request over time, and where each class went, as a PNG.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    time, where = figure.subplots(1, 2)
    for result in results:
        time.plot(*zip(*result.curve, strict=True), label=f"{result.name} ({result.mean_s:.2f} s)")
    time.set_xlabel("simulated seconds")
    time.set_ylabel("seconds per request")
    time.set_yscale("log")
    time.legend(fontsize=8)
    ours = next((r for r in results if r.name == "learned"), results[0])
    left = dict.fromkeys(ours.shares, 0.0)
    for mode in sorted({m for row in ours.shares.values() for m in row}):
        parts = [row.get(mode, 0.0) for row in ours.shares.values()]
        where.bar(list(ours.shares), parts, bottom=list(left.values()), label=mode)
        left = {n: left[n] + p for n, p in zip(left, parts, strict=True)}
    where.set_ylabel(f"share of requests, {ours.name}")
    where.legend(fontsize=8)
    figure.savefig(path, format="png", dpi=120)
