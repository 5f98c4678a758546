"""From samples to figures: geometric means with intervals, and routing against the best mode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping, Sequence

    from router.bench.load import Sample

_Z95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and its 95 % interval."""

    mean: float
    lower: float
    upper: float

    def as_dict(self, name: str = "mean") -> dict[str, float]:
        """The contract's JSON form."""
        return {
            name: round(self.mean, 4),
            "lower": round(self.lower, 4),
            "upper": round(self.upper, 4),
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One target and one class (or kind). Speeds are tokens per second, times milliseconds.

    `mode` is that of a pinned worker; None for others, or where it served in several.
    """

    target: str
    workload_class: str
    n: int
    decode_tps: Interval | None
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    acceptance: float | None
    mean_len: float | None
    mode: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The contract's JSON form of `bench --json`."""
        return {
            "target": self.target,
            "mode": self.mode,
            "class": self.workload_class,
            "n": self.n,
            "decode_tps": self.decode_tps.as_dict() if self.decode_tps else None,
            "ttft_ms": {"p50": self.ttft_p50_ms, "p99": self.ttft_p99_ms},
            "acceptance": self.acceptance,
            "mean_len": self.mean_len,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Time of the best single mode over the routed time, same prompts: above 1 routing wins."""

    best_single: str
    ratio: Interval
    by_target: Mapping[str, float]  # seconds per request


def summarise(samples: Iterable[Sample], *, by_kind: bool = False) -> list[Row]:
    """Rows per target and class (or class/kind), in order of first appearance."""
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        if sample.error:
            continue
        prompt = sample.job.prompt
        label = f"{prompt.workload_class}/{prompt.kind}" if by_kind else prompt.workload_class
        groups.setdefault((sample.job.target, label), []).append(sample)
    return [_row(target, label, rows) for (target, label), rows in groups.items()]


def _row(target: str, label: str, samples: Sequence[Sample]) -> Row:
    speeds = [s.timings.decode_tokens_per_second for s in samples]
    drafted = sum(s.timings.draft_n or 0 for s in samples)
    accepted = sum(s.timings.draft_n_accepted or 0 for s in samples)
    steps = sum(s.timings.steps or 0 for s in samples)
    tokens = sum((s.timings.predicted_n or 1) - 1 for s in samples)
    waits = sorted(1000 * s.ttft_s for s in samples if s.ttft_s is not None)
    return Row(
        target=target,
        workload_class=label,
        n=len(samples),
        decode_tps=geometric_mean([v for v in speeds if v]),
        ttft_p50_ms=_quantile(waits, 0.50),
        ttft_p99_ms=_quantile(waits, 0.99),
        acceptance=round(accepted / drafted, 4) if drafted else None,
        mean_len=round(tokens / steps, 3) if steps else None,
        mode=_pinned_mode(samples),
    )


def _pinned_mode(samples: Iterable[Sample]) -> str | None:
    """Targets of a gateway that runs already are called like its workers, whose modes they hide."""
    modes = {s.mode if "@" in s.job.model else "" for s in samples}
    return modes.pop() or None if len(modes) == 1 else None


def geometric_mean(values: Sequence[float]) -> Interval | None:
    """Geometric mean with a 95 % normal interval on the logarithm; None without values."""
    if not values:
        return None
    logs = [math.log(v) for v in values]
    mean = sum(logs) / len(logs)
    if len(logs) == 1:
        return Interval(math.exp(mean), 0.0, math.inf)
    variance = sum((x - mean) ** 2 for x in logs) / (len(logs) - 1)
    half = _Z95 * math.sqrt(variance / len(logs))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def quotient(above: Interval, below: Interval) -> Interval:
    """The ratio of two independent geometric means, with its 95 % interval."""
    ratio = above.mean / below.mean
    if min(above.lower, below.lower) <= 0 or math.inf in (above.upper, below.upper):
        return Interval(ratio, 0.0, math.inf)
    half = math.hypot(math.log(above.upper / above.mean), math.log(below.upper / below.mean))
    return Interval(ratio, ratio * math.exp(-half), ratio * math.exp(half))


def _quantile(ordered: Sequence[float], q: float) -> float | None:
    if not ordered:
        return None
    return round(ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)], 3)


def compare(
    samples: Iterable[Sample], *, routed: str, rng: random.Random, resamples: int = 2000
) -> Comparison | None:
    """Routed against the best single target, paired by prompt and round, bootstrap interval.

    Only prompts that every target answered count. The best single mode is the one with the least
    total time over exactly these prompts, chosen with hindsight: the hardest control there is.
    """
    times = _paired_times(samples)
    complete = [row for row in times.values() if len(row) == _target_count(times)]
    targets = sorted({t for row in complete for t in row})
    if routed not in targets or len(targets) < 2:
        return None
    totals = {t: sum(row[t] for row in complete) for t in targets}
    best = min((t for t in targets if t != routed), key=totals.__getitem__)
    ratios = sorted(
        _ratio(rng.choices(complete, k=len(complete)), best, routed) for _ in range(resamples)
    )
    low, high = ratios[int(0.025 * resamples)], ratios[int(0.975 * resamples)]
    per_request = {t: totals[t] / len(complete) for t in targets}
    return Comparison(best, Interval(totals[best] / totals[routed], low, high), per_request)


def _ratio(rows: Sequence[Mapping[str, float]], best: str, routed: str) -> float:
    return sum(row[best] for row in rows) / sum(row[routed] for row in rows)


def _paired_times(samples: Iterable[Sample]) -> dict[tuple[int, str, int], dict[str, float]]:
    times: dict[tuple[int, str, int], dict[str, float]] = {}
    for s in samples:
        if not s.error:
            key = (s.job.round, s.job.prompt.text, s.job.seed)
            times.setdefault(key, {})[s.job.target] = s.total_s
    return times


def _target_count(times: Mapping[tuple[int, str, int], Mapping[str, float]]) -> int:
    return len({target for row in times.values() for target in row})
