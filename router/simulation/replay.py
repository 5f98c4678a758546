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

import orjson

from classifier.classes import Classification
from classifier.features import extract
from router.core import FleetView, GatewayError, Outcome, Status, WorkerSnapshot
from router.policy.base import PolicyInput
from router.simulation.stage import class_named
from router.telemetry.decision_log import SCHEMA
from workers.record import WorkerRecord
from workers.state import WorkerState
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from router.policy.base import Policy

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


def read_log(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """The lines of decision logs, oldest file first; lines that are none are passed over, such as
    one cut short by a crash.

    Raises:
        ValueError: a schema of another version.
        OSError: a file cannot be read.
    """
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                try:
                    row = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
                if not isinstance(row, dict) or not isinstance(row.get("outcome"), dict):
                    continue
                if row.get("v") != SCHEMA:
                    raise ValueError(f"{path}: schema {row.get('v')}, this reads {SCHEMA}")
                yield row


def read_decisions(paths: Iterable[Path], worker: str = "") -> Iterator[dict[str, Any]]:
    """As `read_log`, for files that somebody named: each must be a log, and know that worker.

    Raises:
        ValueError: a file has no logged decision, or no candidate was ever called `worker`.
        OSError: a file cannot be read.
    """
    seen: set[str] = set()
    for path in paths:
        count = 0
        for count, row in enumerate(read_log([path]), start=1):  # noqa: B007 - how many there were
            seen.update(c["worker"] for c in (row["decision"] or {}).get("candidates", ()))
            yield row
        if not count:
            raise ValueError(f"{path} has no logged decisions: give a gateway's decisions.jsonl")
    if worker and worker not in seen:
        there = ", ".join(sorted(seen)) or "none"
        raise ValueError(f"the log knows no worker {worker!r}; it has: {there}")


def replay(rows: Iterable[Mapping[str, Any]], policy: Policy) -> Estimate:
    """Put every answered request of a log before `policy`.

    Raises:
        TooLittleEvidence: fewer than MIN_EFFECTIVE effective requests.
    """
    times: list[float] = []
    weighted: list[tuple[float, float]] = []
    for row in rows:
        if not _usable(row):
            continue
        seconds = float(row["outcome"]["total_s"])
        times.append(seconds)
        if _same_choice(policy, row):
            weighted.append((1.0 / float(row["decision"]["propensity"]), seconds))
        policy.observe(_outcome(row))
    return _estimate(times, weighted)


def _usable(row: Mapping[str, Any]) -> bool:
    decision, request = row.get("decision"), row.get("request") or {}
    answered = row["outcome"]["status"] == Status.OK.value and not row["outcome"]["retried"]
    if not answered or decision is None or "class" not in request:
        return False
    return float(decision["propensity"]) > 0.0


def _same_choice(policy: Policy, row: Mapping[str, Any]) -> bool:
    try:
        return policy.choose(_question(row)).worker == str(row["outcome"]["worker"])
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


def _question(row: Mapping[str, Any]) -> PolicyInput:
    request, at = row["request"], float(row["at"])
    workers = tuple(_snapshot(row, candidate) for candidate in row["decision"]["candidates"])
    return PolicyInput(
        request_id=row["id"],
        model=row["model"],
        view=FleetView(row["model"], workers),
        classification=_classification(request),
        features=extract({"messages": []}),  # who may serve is told by the candidates
        prompt_tokens=float(request.get("prompt_tokens") or 0),
        now=at,
        wall=at,
        conversation=row["conversation"],
        fingerprint=row["fingerprint"],
    )


def _snapshot(row: Mapping[str, Any], candidate: Mapping[str, Any]) -> WorkerSnapshot:
    name, served = candidate["worker"], row["outcome"]
    could = "excluded_because" not in candidate or candidate["excluded_because"] is None
    busy = max(0, served["occupancy"] - 1) if name == served["worker"] else 0
    record = WorkerRecord(
        name=name,
        model=row["model"],
        mode=candidate["mode"],
        effective_mode=candidate["mode"],
        url="",
        state=WorkerState.READY,
        slots=_SLOTS,
        context=1_000_000_000,
        spec_hash=name,  # the log knows the hash of the one that served only
        heartbeat_at=0.0,
    )
    why = "" if could else str(candidate["excluded_because"])
    return WorkerSnapshot(record, _SLOTS, busy, busy, available=could, unavailable_reason=why)


def _classification(request: Mapping[str, Any]) -> Classification:
    low, high = request["output_tokens_interval"]
    return Classification(
        workload_class=class_named(request["class"]),
        kind=request["kind"],
        probabilities=request["probabilities"],
        expected_output_tokens=request["expected_output_tokens"],
        output_tokens_interval=(low, high),
        model_version=request["classifier"],
        thinking=request["thinking"],
        language=request["language"],
        source=request["source"],
    )


def _outcome(row: Mapping[str, Any]) -> Outcome:
    served, request = row["outcome"], row["request"]
    return Outcome(
        request_id=row["id"],
        endpoint=row["endpoint"],
        model=row["model"],
        status=Status(served["status"]),
        wall_time=float(row["at"]),
        classification=_classification(request),
        worker=served["worker"],
        mode=served["mode"],
        worker_key=served["worker"],
        fingerprint=row["fingerprint"],
        occupancy=served["occupancy"],
        batch=float(served.get("batch", 0.0)),  # logs of older versions have none of these three
        host=served.get("host", ""),
        beside=float(served.get("beside", 0.0)),
        context_tokens=request.get("context_tokens"),
        has_image=request["image"],
        total_s=served["total_s"],
        timings=Timings.from_payload(served),
        prompt_tokens=request.get("prompt_tokens"),
        prompt_chars=request["prompt_chars"],
        completion_tokens=served["completion_tokens"],
        finish_reason=served["finish_reason"],
    )
