"""Puts one measured profile before a policy: requests as it sees them, then their outcomes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from classifier.classes import Classification, WorkloadClass
from classifier.features import extract
from router.core import FleetView, Outcome, Status, WorkerSnapshot
from router.policy.base import PolicyInput
from workers.record import WorkerRecord
from workers.state import WorkerState
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.core import RoutingDecision
    from router.policy.base import Policy
    from router.simulation.profiles import Profile, ProfileCell

_START: Final = 1_800_000_000.0  # any fixed Unix time: a run must not depend on the calendar
_CONTEXT: Final = 1_000_000


class Stage:
    """A clock that moves by what requests take, one snapshot and one classification per cell."""

    def __init__(self, profile: Profile, policy: Policy) -> None:
        self.policy = policy
        self._model = profile.name
        self._views = [_view(profile, cell) for cell in profile.cells]
        self._classes = [cell_classification(cell.name) for cell in profile.cells]
        self._loads = [cell.concurrency for cell in profile.cells]
        self._features = extract({"messages": []})  # nothing special is asked for
        self._seconds = 0.0
        self._count = 0

    def serve(
        self, cell: int, tokens: int, noise: float, speeds: Mapping[str, float]
    ) -> RoutingDecision:
        """Let the policy choose for one request of a cell and learn from its outcome."""
        self._count += 1
        decision = self.policy.choose(self._request(cell))
        self.policy.reserved(decision)
        speed = speeds[decision.worker] * math.exp(noise)
        seconds = (tokens - 1) / speed
        # The others of the batch run at the same time: the clock of traffic moves by the share.
        self._seconds += seconds / self._loads[cell]
        self.policy.observe(self._outcome(cell, decision, tokens, seconds))
        return decision

    def _request(self, cell: int) -> PolicyInput:
        return PolicyInput(
            request_id=f"r{self._count}",
            model=self._model,
            view=self._views[cell],
            classification=self._classes[cell],
            features=self._features,
            prompt_tokens=0.0,
            now=self._seconds,
            wall=_START + self._seconds,
        )

    def _outcome(
        self, cell: int, decision: RoutingDecision, tokens: int, seconds: float
    ) -> Outcome:
        return Outcome(
            request_id=f"r{self._count}",
            endpoint="simulation",
            model=self._model,
            status=Status.OK,
            wall_time=_START + self._seconds,
            classification=self._classes[cell],
            decision=decision,
            worker=decision.worker,
            mode=decision.mode,
            worker_key=decision.worker,
            occupancy=self._loads[cell],
            context_tokens=0,
            total_s=seconds,
            timings=Timings(predicted_n=tokens, predicted_ms=1000.0 * seconds),
            completion_tokens=tokens,
        )


def _view(profile: Profile, cell: ProfileCell) -> FleetView:
    busy = cell.concurrency - 1
    snapshots = tuple(
        WorkerSnapshot(_record(profile, arm), slots=_CONTEXT, in_flight=busy, total_in_flight=busy)
        for arm in cell.speeds
    )
    return FleetView(profile.name, snapshots)


def _record(profile: Profile, arm: str) -> WorkerRecord:
    mode = profile.modes[arm]
    return WorkerRecord(
        name=arm,
        model=profile.name,
        mode=mode,
        effective_mode=mode,
        url="",
        state=WorkerState.READY,
        slots=_CONTEXT,
        context=_CONTEXT,
        spec_hash=arm,
        heartbeat_at=0.0,
    )


def class_named(name: str) -> WorkloadClass:
    """The class of that name; where it is none of the three, a value of its kind beside them.

    Compiled code insists on the type of what it is given, and a plain string is not of it.
    """
    if name in set(WorkloadClass):
        return WorkloadClass(name)
    made = str.__new__(WorkloadClass, name)
    made._name_ = made._value_ = name
    return made


def cell_classification(name: str) -> Classification:
    """The cell's name in the place of a class: the tables key by it, whatever it is."""
    return Classification(
        workload_class=class_named(name),
        kind="",
        probabilities={name: 1.0},
        expected_output_tokens=300.0,
        output_tokens_interval=(100.0, 900.0),
        model_version="simulation",
        thinking=False,
        language="en",
        source="simulation",
    )
