"""Finished requests with stated figures."""

from __future__ import annotations

from classifier import Classification, WorkloadClass
from router.core import Candidate, CostEstimate, Outcome, Reason, RoutingDecision, Status
from workers.timings import Timings


def classification(name: str = "prose", confidence: float = 0.9, **changes) -> Classification:
    """A class with a confidence; the rest of the probability goes to the others."""
    rest = (1.0 - confidence) / 2
    values = {
        "workload_class": WorkloadClass(name),
        "kind": {"structured": "code", "prose": "essay", "reasoning": "math"}[name],
        "probabilities": {c.value: confidence if c == name else rest for c in WorkloadClass},
        "expected_output_tokens": 200.0,
        "output_tokens_interval": (100.0, 400.0),
        "model_version": "rules-1",
        "thinking": False,
        "language": "en",
        "source": "rules",
    }
    return Classification(**(values | changes))


def outcome(
    name: str = "prose",
    worker: str = "prose",
    mode: str = "mtp-n3",
    *,
    tokens: int = 101,
    tokens_per_second: float = 50.0,
    at: float = 1_700_000_000.0,
    reason: Reason = Reason.PREDICTED_FASTEST,
    confidence: float = 0.9,
    **changes,
) -> Outcome:
    """A streamed answer of `tokens` at that decode speed; two of three drafts accepted."""
    drafted = 0 if mode == "ar" else 3 * (tokens // 4)
    estimate = CostEstimate(prefill_s=0.1, decode_s=2.0, interval_s=(1.0, 4.0), samples=30.0)
    candidates = (
        Candidate(worker, mode, estimate),
        Candidate("other", "ar", excluded_because="is draining"),
    )
    values = {
        "request_id": f"request-{at}",
        "endpoint": "/v1/chat/completions",
        "model": "tiny",
        "status": Status.OK,
        "wall_time": at,
        "classification": classification(name, confidence),
        "decision": RoutingDecision(worker, mode, reason, candidates, "learned"),
        "worker": worker,
        "mode": mode,
        "worker_key": f"hash-{worker}",
        "http_status": 200,
        "occupancy": 1,
        "context_tokens": 300,
        "ttft_s": 0.12,
        "total_s": 0.12 + tokens / tokens_per_second,
        "timings": Timings(
            cache_n=0,
            prompt_n=50,
            prompt_ms=100.0,
            predicted_n=tokens,
            predicted_ms=1000.0 * (tokens - 1) / tokens_per_second,
            draft_n=drafted if mode != "ar" else None,
            draft_n_accepted=2 * drafted // 3 if mode != "ar" else None,
        ),
        "prompt_tokens": 50,
        "completion_tokens": tokens,
        "finish_reason": "stop",
    }
    return Outcome(**(values | changes))
