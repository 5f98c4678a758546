"""All figures of one bench run in the shape of `bench --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.bench.report import compare, summarise
from router.bench.shares import shares

if TYPE_CHECKING:
    import random

    from router.bench.load import Sample


def full_report(samples: list[Sample], routed: str, rng: random.Random) -> dict[str, Any]:
    """Everything `bench --json` prints, from the counted samples."""
    rows, kinds = summarise(samples), summarise(samples, by_kind=True)
    comparison = compare(samples, routed=routed, rng=rng)
    return {
        "rows": [row.as_dict() for row in rows],
        "kinds": [row.as_dict() for row in kinds],
        "routing": [s.as_dict() for s in shares(rows, samples, routed=routed)],
        "routing_by_kind": [s.as_dict() for s in shares(kinds, samples, routed=routed)],
        "best_single": comparison.best_single if comparison else None,
        "seconds_per_request": dict(comparison.by_target) if comparison else {},
        "routed_vs_best_single": comparison.ratio.as_dict("ratio") if comparison else None,
        "failed": sum(bool(s.error) for s in samples),
        "thinking_seen": _thinking(samples),
    }


def _thinking(samples: list[Sample]) -> dict[str, float]:
    """Share of answers with reasoning tokens, per class: asked for is not the same as seen."""
    classes = {s.job.prompt.workload_class for s in samples}
    return {
        name: round(_share([s.thought for s in samples if s.job.prompt.workload_class == name]), 3)
        for name in sorted(classes)
    }


def _share(flags: list[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0
