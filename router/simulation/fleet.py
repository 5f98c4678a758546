"""A whole fleet by discrete events: the serving policy unchanged inside, on a simulated clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import simpy

from classifier.features import extract
from router.core import FleetView, GatewayError, Outcome, Status, WorkerSnapshot
from router.policy.base import PolicyInput
from router.simulation.machine import Job, Machine
from router.simulation.sessions import draw_sessions
from router.simulation.stage import cell_classification
from workers.record import WorkerRecord
from workers.state import WorkerState
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from router.policy.base import Policy
    from router.simulation.fleet_plan import FleetPlan, Happening, SimWorker
    from router.simulation.sessions import Session, Turn

MODEL: Final = "model"
_START: Final = 1_800_000_000.0  # any fixed Unix time: a run must not depend on the calendar
_RETRY_S: Final = 1.0  # nobody can serve: a request asks again after so long
_DRAFTED_PER_STEP: Final = 3


@dataclass(frozen=True, slots=True)
class Answered:
    """One finished request, seconds; `explored_s` is the predicted loss of exploring."""

    at: float
    workload_class: str
    mode: str
    worker: str
    total_s: float
    ttft_s: float
    tokens: int


class FleetRun:
    """One policy on one plan."""

    def __init__(self, plan: FleetPlan, policy: Policy) -> None:
        self.env = simpy.Environment()
        self.policy = policy
        self.answers: list[Answered] = []
        self.retries = 0
        self.reasons: dict[str, int] = {}
        self._plan = plan
        self._features = extract({"messages": []})
        self._classes = {c: cell_classification(c) for c in plan.traffic.classes}
        self._waiting: dict[int, Any] = {}
        self._records = {w.name: w for w in _records(plan.workers)}
        self._stale: set[str] = set()
        self._second = 0
        self.machines = {m.name: m for m in self._machines()}
        self._snapshots = {m.name: self._snapshot(m) for m in self.machines.values()}
        self._homes: dict[str, str] = {}
        self._count = 0

    def run(self) -> FleetRun:
        """Serve all requests of the plan."""
        sessions = draw_sessions(self._plan.traffic, self._plan.requests, self._plan.seed)
        self.env.process(self._arrive(sessions))
        for happening in self._plan.happenings:
            self.env.process(self._befall(happening))
        wanted = sum(len(s.turns) for s in sessions)
        while len(self.answers) < wanted:
            self.env.step()
        return self

    def _machines(self) -> list[Machine]:
        seen: set[str] = set()
        made = []
        for spec in self._plan.workers:
            for name in _names(spec):
                machine = self._machine(name, spec)
                if spec.group:  # the first of a group has the device
                    machine.resident = spec.group not in seen
                    seen.add(spec.group)
                made.append(machine)
        return made

    def _machine(self, name: str, spec: SimWorker) -> Machine:
        curve = self._plan.modes[spec.mode]
        return Machine(self.env, name, spec, curve, self._done, self._lost, self._touched)

    def _arrive(self, sessions: Sequence[Session]) -> Generator[Any, Any, None]:
        for session in sessions:
            yield self.env.timeout(session.at - self.env.now)
            self.env.process(self._talk(session))

    def _talk(self, session: Session) -> Generator[Any, Any, None]:
        held = 0
        for turn in session.turns:
            if turn.pause_s:
                yield self.env.timeout(turn.pause_s)
            job = Job(turn, session.name, held + turn.added_tokens, self.env.now)
            ended = self._waiting[id(job)] = self.env.event()
            self._route(job)
            yield ended
            held = job.prompt_tokens + turn.tokens
        self._homes.pop(session.name, None)

    def _route(self, job: Job) -> None:
        """Choose and hand over; where nobody can serve, ask again a little later."""
        self._count += 1
        try:
            job.decision = self.policy.choose(self._question(job))
        except GatewayError:
            self.env.timeout(_RETRY_S).callbacks.append(lambda _event: self._route(job))
            return
        self.policy.reserved(job.decision)
        reason = job.decision.reason.value
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        self.machines[job.decision.worker].accept(job)

    def _question(self, job: Job) -> PolicyInput:
        home = self._homes.get(job.session)
        held = self.machines[home].cached(job.session) if home is not None else 0
        return PolicyInput(
            request_id=f"r{self._count}",
            model=MODEL,
            view=self._view(),
            classification=self._classes[job.turn.read_as],
            features=self._features,
            prompt_tokens=float(job.prompt_tokens),
            now=self.env.now,
            wall=_START + self.env.now,
            conversation=job.session,
            home=home,
            cached_tokens={home: float(held)} if home is not None else {},
        )

    def _view(self) -> FleetView:
        """The workers as a gateway sees them: anew where something changed, and once a second
        where something runs."""
        second = int(self.env.now)
        if second != self._second:
            self._second = second
            self._stale.update(m.name for m in self.machines.values() if m.load)
        for name in self._stale:
            self._snapshots[name] = self._snapshot(self.machines[name])
        self._stale.clear()
        return FleetView(MODEL, tuple(self._snapshots.values()))

    def _snapshot(self, machine: Machine) -> WorkerSnapshot:
        record = self._records[machine.name]
        if not machine.serving:
            state = WorkerState.BACKOFF if not machine.up else WorkerState.STOPPED
            record = replace(record, state=state)
        load, now = machine.load, self.env.now
        left = tuple(_left(job, now) for job in machine.remaining())
        return WorkerSnapshot(record, machine.spec.slots, load, load, left)

    def _touched(self, machine: Machine) -> None:
        self._stale.add(machine.name)

    def _done(self, job: Job, machine: Machine) -> None:
        now, turn = self.env.now, job.turn
        self._homes[job.session] = machine.name
        begun = job.decoding_at if job.decoding_at is not None else now
        self.answers.append(
            Answered(
                at=now,
                workload_class=turn.workload_class,
                mode=machine.spec.mode,
                worker=machine.name,
                total_s=now - job.asked_at,
                ttft_s=begun - job.asked_at,
                tokens=turn.tokens,
            )
        )
        self.policy.observe(self._outcome(job, machine))
        self._waiting.pop(id(job)).succeed()

    def _lost(self, job: Job) -> None:
        """The worker died: the gateway asks another one."""
        self.retries += 1
        job.retries += 1
        job.decoding_at = None
        self._homes.pop(job.session, None)
        self._route(job)

    def _outcome(self, job: Job, machine: Machine) -> Outcome:
        now, turn = self.env.now, job.turn
        return Outcome(
            request_id=f"r{self._count}",
            endpoint="simulation",
            model=MODEL,
            status=Status.OK,
            wall_time=_START + now,
            classification=self._classes[turn.read_as],
            decision=job.decision,
            worker=machine.name,
            mode=machine.spec.mode,
            worker_key=machine.spec.name,
            conversation=job.session,
            occupancy=min(job.occupancy, machine.spec.slots),
            batch=machine.batch(job),
            context_tokens=job.prompt_tokens,
            queue_s=job.started_at - job.asked_at,
            total_s=now - job.asked_at,
            timings=_timings(job, machine, now),
            completion_tokens=turn.tokens,
            finish_reason="stop",
            retried=job.retries > 0,
        )

    def _befall(self, happening: Happening) -> Generator[Any, Any, None]:
        yield self.env.timeout(happening.at)
        for machine in self.machines.values():
            named = happening.worker in (machine.name, machine.spec.name)
            if happening.mode and machine.spec.mode == happening.mode:
                machine.drift[happening.workload_class] = happening.speed
            if named and happening.crash:
                machine.crash(happening.crash)
            if named and happening.load:
                self.env.process(self._swap(machine, happening.load))

    def _swap(self, machine: Machine, seconds: float) -> Generator[Any, Any, None]:
        """The others of the group drain, then this one loads."""
        others = [m for m in self.machines.values() if m.spec.group == machine.spec.group]
        for other in others:
            other.unload()
        while any(other.load for other in others):
            yield self.env.timeout(0.5)
        yield self.env.timeout(seconds)
        machine.load_again()


def _names(spec: SimWorker) -> list[str]:
    if spec.count == 1:
        return [spec.name]
    return [f"{spec.name}-{number}" for number in range(spec.count)]


def _records(workers: Sequence[SimWorker]) -> list[WorkerRecord]:
    """What the agents would publish; equal workers share what is learned of them."""
    return [
        WorkerRecord(
            name=name,
            model=MODEL,
            mode=spec.mode,
            effective_mode=spec.mode,
            url="",
            state=WorkerState.READY,
            slots=spec.slots,
            context=spec.context,
            spec_hash=spec.name,
            heartbeat_at=0.0,
            exclusive_group=spec.group or None,
        )
        for spec in workers
        for name in _names(spec)
    ]


def _left(job: Job, now: float) -> float:
    """Tokens a gateway expects of a request in flight: by the estimate, not the truth."""
    expected = job.decision.expected_tokens if job.decision is not None else 0.0
    estimate = job.decision.estimate() if job.decision is not None else None
    if estimate is None or estimate.own_s <= 0.0:
        return expected or 300.0
    gone = (now - job.started_at) / estimate.own_s
    return max(0.1 * expected, expected * (1.0 - gone))


def _timings(job: Job, machine: Machine, now: float) -> Timings:
    begun = job.decoding_at if job.decoding_at is not None else now
    decoded = job.turn.tokens - 1
    length = _accepted(machine.curve.accepted, job.turn)
    accepted = None if length is None else round(decoded * (1.0 - 1.0 / max(1.0, length)))
    return Timings(
        cache_n=job.prompt_tokens - job.fresh_tokens,
        prompt_n=job.fresh_tokens,
        prompt_ms=1000.0 * (begun - job.started_at),
        predicted_n=job.turn.tokens,
        predicted_ms=max(1e-3, 1000.0 * (now - begun)),
        draft_n=None if accepted is None else _DRAFTED_PER_STEP * (decoded - accepted),
        draft_n_accepted=accepted,
    )


def _accepted(lengths: Mapping[str, float], turn: Turn) -> float | None:
    return lengths.get(turn.workload_class)
