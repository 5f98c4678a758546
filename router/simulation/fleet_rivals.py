"""What a fleet is measured against: an oracle that knows every speed, and single-mode fleets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from router.core import Candidate, Reason, RoutingDecision
from router.policy.filters import eligible

if TYPE_CHECKING:
    from router.core import Outcome, WorkerSnapshot
    from router.policy.base import PolicyInput
    from router.simulation.fleet_plan import FleetPlan
    from router.simulation.machine import Machine


class Oracle:
    """Greedy with the truth: the least marginal seconds by the real speeds of this moment.

    It knows speeds and loads, not the future: neither arrivals nor how long an answer gets.
    """

    name = "oracle"

    def __init__(self, machines: dict[str, Machine], tokens: dict[str, float]) -> None:
        self._machines = machines
        self._tokens = tokens

    def choose(self, request: PolicyInput) -> RoutingDecision:
        """See `Policy.choose`."""
        workers = eligible(request).workers
        best = min(workers, key=lambda worker: self._seconds(request, worker))
        return RoutingDecision(
            worker=best.name,
            mode=best.record.effective_mode,
            reason=Reason.PREDICTED_FASTEST,
            candidates=(Candidate(best.name, best.record.effective_mode),),
            policy=self.name,
            expected_tokens=self._tokens[str(request.classification.workload_class)],
        )

    def reserved(self, decision: RoutingDecision) -> None:
        """Keeps no account."""

    def observe(self, outcome: Outcome) -> None:
        """Knows already."""

    def _seconds(self, request: PolicyInput, worker: WorkerSnapshot) -> float:
        machine, name = self._machines[worker.name], str(request.classification.workload_class)
        load, slots = machine.load, machine.spec.slots
        after = machine.share(min(load + 1, slots))
        fresh = request.prompt_tokens - machine.cached(request.conversation)
        lone = fresh / machine.spec.prompt_speed + self._tokens[name] / machine.lone_speed(name)
        if load >= slots:  # rounds of the batch until it is this one's turn
            return lone / after * (2 + (load - slots) // slots)
        slower = 1.0 / after - 1.0 / machine.share(max(1, load))
        others = sum(
            0.5
            * self._tokens[job.turn.workload_class]
            / machine.lone_speed(job.turn.workload_class)
            for job in machine.remaining()
        )
        return lone / after + (max(0.0, slower) * others if load else 0.0)


def single_mode(plan: FleetPlan, mode: str) -> FleetPlan:
    """The same number of workers, slots and devices, all in one mode."""
    workers = tuple(replace(worker, mode=mode) for worker in plan.workers)
    return replace(plan, workers=workers)


def mean_tokens(plan: FleetPlan) -> dict[str, float]:
    """Expected answer tokens by class."""
    sizes = plan.traffic.answer.items()
    return {name: size.median * 2.718281828459045 ** (size.sigma**2 / 2) for name, size in sizes}
