"""The controls every claim is measured against, and the mode that only watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.core import Candidate, Reason, RoutingDecision
from router.policy.filters import eligible

if TYPE_CHECKING:
    from collections.abc import Callable

    from router.core import Outcome, WorkerSnapshot
    from router.policy.base import Policy, PolicyInput
    from router.policy.filters import Fit


class RoundRobin:
    """Each worker in turn, per model."""

    name = "round_robin"

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def choose(self, request: PolicyInput) -> RoutingDecision:
        """See `Policy.choose`."""
        fit = eligible(request)
        turn = self._turns.get(request.model, 0)
        self._turns[request.model] = turn + 1
        # Full workers are skipped while another has a slot: nobody would queue beside an idle one.
        free = [worker for worker in fit.workers if worker.free_slots] or list(fit.workers)
        return _decision(self.name, free[turn % len(free)], Reason.ROUND_ROBIN, fit)

    def reserved(self, decision: RoutingDecision) -> None:
        """Keeps no account."""

    def observe(self, outcome: Outcome) -> None:
        """Learns nothing."""


class LeastLoaded:
    """The worker with the smallest share of its slots taken; ties by the stable order."""

    name = "least_loaded"

    def choose(self, request: PolicyInput) -> RoutingDecision:
        """See `Policy.choose`."""
        fit = eligible(request)
        worker = min(fit.workers, key=lambda w: w.occupancy / max(1, w.slots))
        return _decision(self.name, worker, Reason.LEAST_LOADED, fit)

    def reserved(self, decision: RoutingDecision) -> None:
        """Keeps no account."""

    def observe(self, outcome: Outcome) -> None:
        """Learns nothing."""


class Static:
    """Always the named worker while it can serve, else the first that can."""

    name = "static"

    def __init__(self, worker: str) -> None:
        self._worker = worker

    def choose(self, request: PolicyInput) -> RoutingDecision:
        """See `Policy.choose`."""
        fit = eligible(request)
        named = next((w for w in fit.workers if w.name == self._worker), fit.workers[0])
        return _decision(self.name, named, Reason.STATIC, fit)

    def reserved(self, decision: RoutingDecision) -> None:
        """Keeps no account."""

    def observe(self, outcome: Outcome) -> None:
        """Learns nothing."""


class ObserveOnly:
    """Asks one policy, hands its decision to `log`, and serves by another."""

    name = "observe_only"

    def __init__(
        self,
        watched: Policy,
        control: Policy,
        log: Callable[[RoutingDecision, RoutingDecision], None] | None = None,
    ) -> None:
        self._watched = watched
        self._control = control
        self._log = log
        self.agreed = 0
        self.asked = 0
        self._last: tuple[RoutingDecision, RoutingDecision] | None = None  # wished, served

    def choose(self, request: PolicyInput) -> RoutingDecision:
        """See `Policy.choose`: the control's choice, with the watched policy's candidates."""
        wished = self._watched.choose(request)
        served = self._control.choose(request)
        self._last = wished, served
        self.asked += 1
        self.agreed += wished.worker == served.worker
        if self._log is not None:
            self._log(wished, served)
        return RoutingDecision(
            worker=served.worker,
            mode=served.mode,
            reason=served.reason,
            candidates=wished.candidates,
            policy=f"{self.name}:{wished.policy}={wished.worker}",
            expected_tokens=wished.expected_tokens,
        )

    def reserved(self, decision: RoutingDecision) -> None:
        """Each accounts for what it chose itself, in the same tick."""
        if self._last is not None:
            wished, served = self._last
            self._watched.reserved(wished)
            self._control.reserved(served)

    def observe(self, outcome: Outcome) -> None:
        """Both learn."""
        self._watched.observe(outcome)
        self._control.observe(outcome)


def _decision(policy: str, worker: WorkerSnapshot, reason: Reason, fit: Fit) -> RoutingDecision:
    rows = [Candidate(w.name, w.record.effective_mode) for w in fit.workers]
    return RoutingDecision(
        worker=worker.name,
        mode=worker.record.effective_mode,
        reason=reason,
        candidates=(*rows, *fit.excluded),
        policy=policy,
    )
