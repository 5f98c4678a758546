"""Predicted times, candidates and the choice with its reason: enough to replay it offline."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from classifier.quick import quick

if TYPE_CHECKING:
    from collections.abc import Mapping


class Reason(StrEnum):
    """Why a worker was chosen; sent as x-specroute-reason."""

    PREDICTED_FASTEST = "predicted_fastest"
    PINNED = "pinned"
    MODE_REQUESTED = "mode_requested"
    ONLY_CANDIDATE = "only_candidate"
    AFFINITY = "affinity"  # the conversation stays where its cache is
    EXPLORATION = "exploration"
    BASELINE = "ar_baseline"  # keeps the speed-up figures honest
    ROUND_ROBIN = "round_robin"
    LEAST_LOADED = "least_loaded"
    STATIC = "static"
    FALLBACK = "fallback"  # a remote model, because nobody here could
    RETRY = "retry"  # the first choice failed before its first byte


@quick
@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Predicted seconds of one request on one worker, by part."""

    queue_s: float = 0.0
    switch_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    swap_s: float = 0.0
    externality_s: float = 0.0  # what the others in the batch lose
    interval_s: tuple[float, float] = (0.0, 0.0)  # 90 % interval of the request's own time
    decode_tokens_per_second: float = 0.0
    samples: float = 0.0  # effective observations behind the speed

    @property
    def own_s(self) -> float:
        """What the caller will wait, in seconds."""
        return self.queue_s + self.switch_s + self.prefill_s + self.decode_s + self.swap_s

    @property
    def total_s(self) -> float:
        """Marginal seconds: own time and what the neighbours lose."""
        return self.own_s + self.externality_s


@quick
@dataclass(frozen=True, slots=True)
class Candidate:
    """One worker as considered: its estimate, or why it was excluded."""

    worker: str
    mode: str
    estimate: CostEstimate | None = None
    excluded_because: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The form of `POST /route` (milliseconds)."""
        row: dict[str, Any] = {"worker": self.worker, "mode": self.mode}
        row["excluded_because"] = self.excluded_because
        if self.estimate is None:
            return row | {"predicted_ms": None, "interval_ms": None, "parts": None}
        e = self.estimate
        parts = {
            "queue": e.queue_s,
            "prefill": e.prefill_s,
            "decode": e.decode_s,
            "switch": e.switch_s,
            "swap": e.swap_s,
        }
        return row | {
            "predicted_ms": round(1000 * e.own_s, 3),
            "interval_ms": [round(1000 * bound, 3) for bound in e.interval_s],
            "parts": {name: round(1000 * seconds, 3) for name, seconds in parts.items()},
            "externality_ms": round(1000 * e.externality_s, 3),
            "decode_tps": round(e.decode_tokens_per_second, 3),
            "samples": round(e.samples, 2),
        }


@quick
@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """The choice. `propensity` is the probability with which this worker was chosen."""

    worker: str
    mode: str
    reason: Reason
    candidates: tuple[Candidate, ...]
    policy: str
    propensity: float = 1.0
    explored: bool = False
    expected_tokens: float = 0.0  # output tokens that the estimate assumed
    overrides: Mapping[str, Any] = field(default_factory=dict)  # per-request draft settings

    def estimate(self) -> CostEstimate | None:
        """The chosen worker's estimate, where the policy made one."""
        chosen = (c for c in self.candidates if (c.worker, c.mode) == (self.worker, self.mode))
        return next((c.estimate for c in chosen), None)
