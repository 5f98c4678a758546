"""What another policy would have cost on logged traffic, by inverse-propensity weights.

Each logged request is put before the other policy as it was (candidates, class, sizes). Where it
chooses the worker that served, the outcome counts with one over the probability with which that
worker had been chosen; the policy then learns the outcome, as it would have. The estimate is the
weighted mean; it is refused when the weights leave too few effective requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from classifier.classes import Classification
from classifier.features import extract
from router.core import FleetView, GatewayError, Outcome, Status, WorkerSnapshot
from router.policy.base import PolicyInput
from router.simulation.logged import Classified
from router.simulation.stage import class_named
from workers.record import WorkerRecord
from workers.state import WorkerState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from router.policy.base import Policy
    from router.simulation.logged import Logged, LoggedCandidate, LoggedDecision

MIN_EFFECTIVE: Final = 30.0
"""Fewer effective requests than this are no evidence."""

_SLOTS: Final = 1_000


class TooLittleEvidence(ValueError):
    """The logged choices say too little about what the other policy would have done."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds per request of the logged policy and of the other; the interval is of the other's."""

    requests: int
    matched: int
    effective: float
    logged_s: float
    replayed_s: float
    ci_low: float
    ci_high: float

    def as_dict(self) -> dict[str, Any]:
        """For `specroute replay --json`."""
        return {
            "requests": self.requests,
            "matched": self.matched,
            "effective": round(self.effective, 1),
            "logged_seconds": self.logged_s,
            "replayed_seconds": self.replayed_s,
            "interval": [self.ci_low, self.ci_high],
            "ratio": self.replayed_s / self.logged_s,
        }


def replay(rows: Iterable[Logged], policy: Policy) -> Estimate:
    """Put every answered request of a log before `policy`.

    Raises:
        TooLittleEvidence: fewer than MIN_EFFECTIVE effective requests.
    """
    times: list[float] = []
    weighted: list[tuple[float, float]] = []
    for row in rows:
        case = _case(row)
        if case is None:
            continue
        seconds = row.outcome.total_s
        times.append(seconds)
        if _same_choice(policy, case):
            weighted.append((1.0 / case.decision.propensity, seconds))
        policy.observe(_outcome(case))
    return _estimate(times, weighted)


@dataclass(frozen=True, slots=True)
class _Case:
    """A request that was classified, decided and answered at its first attempt."""

    row: Logged
    request: Classified
    decision: LoggedDecision


def _case(row: Logged) -> _Case | None:
    request, decision = row.request, row.decision
    answered = row.outcome.status is Status.OK and not row.outcome.retried
    if not answered or decision is None or not isinstance(request, Classified):
        return None
    return _Case(row, request, decision) if decision.propensity > 0.0 else None


def _same_choice(policy: Policy, case: _Case) -> bool:
    try:
        return policy.choose(_question(case)).worker == case.row.outcome.worker
    except GatewayError:
        return False


def _estimate(times: list[float], weighted: list[tuple[float, float]]) -> Estimate:
    total = sum(weight for weight, _ in weighted)
    squares = sum(weight * weight for weight, _ in weighted)
    effective = total * total / squares if squares > 0 else 0.0
    if effective < MIN_EFFECTIVE:
        raise TooLittleEvidence(
            f"{effective:.0f} effective requests of {len(times)}, at least {MIN_EFFECTIVE:.0f} are "
            "needed: log more exploration, or compare with a policy that is more alike"
        )
    mean = sum(weight * seconds for weight, seconds in weighted) / total
    var = sum((weight * (seconds - mean)) ** 2 for weight, seconds in weighted) / total**2
    reach = 1.96 * math.sqrt(var)
    return Estimate(
        requests=len(times),
        matched=len(weighted),
        effective=effective,
        logged_s=sum(times) / len(times),
        replayed_s=mean,
        ci_low=mean - reach,
        ci_high=mean + reach,
    )


def _question(case: _Case) -> PolicyInput:
    row = case.row
    workers = tuple(_snapshot(row, candidate) for candidate in case.decision.candidates)
    return PolicyInput(
        request_id=row.id,
        model=row.model,
        view=FleetView(row.model, workers),
        classification=_classification(case.request),
        features=extract({"messages": []}),  # who may serve is told by the candidates
        prompt_tokens=float(case.request.prompt_tokens or 0),
        now=row.at,
        wall=row.at,
        conversation=row.conversation,
        fingerprint=row.fingerprint,
    )


def _snapshot(row: Logged, candidate: LoggedCandidate) -> WorkerSnapshot:
    name, why = candidate.worker, candidate.excluded_because
    busy = max(0, row.outcome.occupancy - 1) if name == row.outcome.worker else 0
    record = WorkerRecord(
        name=name,
        model=row.model,
        mode=candidate.mode,
        effective_mode=candidate.mode,
        url="",
        state=WorkerState.READY,
        slots=_SLOTS,
        context=1_000_000_000,
        spec_hash=name,  # the log knows the hash of the one that served only
        heartbeat_at=0.0,
    )
    could = why is None
    return WorkerSnapshot(record, _SLOTS, busy, busy, available=could, unavailable_reason=why or "")


def _classification(request: Classified) -> Classification:
    return Classification(
        workload_class=class_named(request.workload_class),
        kind=request.kind,
        probabilities=request.probabilities,
        expected_output_tokens=request.expected_output_tokens,
        output_tokens_interval=request.output_tokens_interval,
        model_version=request.classifier,
        thinking=request.thinking,
        language=request.language,
        source=request.source,
    )


def _outcome(case: _Case) -> Outcome:
    row, request, served = case.row, case.request, case.row.outcome
    return Outcome(
        request_id=row.id,
        endpoint=row.endpoint,
        model=row.model,
        status=served.status,
        wall_time=row.at,
        classification=_classification(request),
        worker=served.worker,
        mode=served.mode,
        worker_key=served.worker,
        fingerprint=row.fingerprint,
        occupancy=served.occupancy,
        batch=served.batch,
        host=served.host,
        beside=served.beside,
        context_tokens=request.context_tokens,
        has_image=request.image,
        total_s=served.total_s,
        timings=served.timings,
        prompt_tokens=request.prompt_tokens,
        prompt_chars=request.prompt_chars,
        completion_tokens=served.completion_tokens,
        finish_reason=served.finish_reason,
    )
