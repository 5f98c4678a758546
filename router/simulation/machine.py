"""One simulated worker: slots, processor sharing, prefill, a prefix cache, crashes and unloading.

Requests in a batch share the machine: each proceeds at its own lone speed times the share that the
mode's occupancy curve leaves at this load. Work is therefore counted in lone seconds, and one
clock per machine says how many of those have passed.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from simpy import Environment

    from router.core import RoutingDecision
    from router.simulation.fleet_plan import ModeCurve, SimWorker
    from router.simulation.sessions import Turn


@dataclass(slots=True)
class Job:
    """One request on its way; times in simulated seconds."""

    turn: Turn
    session: str
    prompt_tokens: int
    asked_at: float
    decision: RoutingDecision | None = None
    occupancy: int = 0
    busy_before: float = 0.0  # request-seconds of its machine until it started
    fresh_tokens: int = 0
    started_at: float = 0.0
    decoding_at: float | None = None
    decode_work: float = 0.0
    retries: int = 0


@dataclass(slots=True)
class Machine:
    """A worker at work.

    `done(job)` is called when an answer ends, `lost(job)` when it dies, `touched` when what a
    gateway sees of the worker is no longer so.
    """

    env: Environment
    name: str
    spec: SimWorker
    curve: ModeCurve
    done: Callable[[Job, Machine], None]
    lost: Callable[[Job], None]
    touched: Callable[[Machine], None]  # something changed that a gateway would see
    drift: dict[str, float] = field(default_factory=dict)  # by class, "" for all
    up: bool = True
    resident: bool = True
    waiting: deque[Job] = field(default_factory=deque)
    held: OrderedDict[str, int] = field(default_factory=OrderedDict)  # tokens by conversation
    _running: list[tuple[float, int, Job]] = field(default_factory=list)
    _lone: float = 0.0  # lone seconds that every running request has had so far
    _since: float = 0.0
    _busy: float = 0.0  # request-seconds so far
    _turn: int = 0
    _count: int = 0
    _shares: dict[int, float] = field(default_factory=dict)

    @property
    def load(self) -> int:
        """Requests running and waiting."""
        return len(self._running) + len(self.waiting)

    @property
    def serving(self) -> bool:
        """Whether new requests may come."""
        return self.up and self.resident

    def lone_speed(self, workload_class: str) -> float:
        """Tokens per second of a lone request, as the machine is now."""
        drift = self.drift.get(workload_class, 1.0) * self.drift.get("", 1.0)
        return self.curve.speed[workload_class] * self.spec.speed * drift

    def share(self, parallel: int) -> float:
        """What each of so many parallel requests keeps of its lone speed."""
        found = self._shares.get(parallel)
        if found is None:
            found = self._shares[parallel] = self.curve.share(max(1, parallel))
        return found

    def cached(self, session: str) -> int:
        """Prompt tokens held of a conversation."""
        return self.held.get(session, 0)

    def remaining(self) -> list[Job]:
        """The requests running now."""
        return [job for _, _, job in self._running]

    def batch(self, job: Job) -> float:
        """Mean requests running while that one did, which has just ended."""
        seconds = self.env.now - job.started_at
        return (self._busy - job.busy_before) / seconds if seconds > 0.0 else 1.0

    def accept(self, job: Job) -> None:
        """Take a request; it waits if no slot is free."""
        job.occupancy = self.load + 1
        if len(self._running) < self.spec.slots:
            self._start(job)
        else:
            self.waiting.append(job)
        self.touched(self)

    def crash(self, seconds: float) -> None:
        """Everything in flight is lost, and what was cached; up again after so long."""
        gone = [*self.remaining(), *self.waiting]
        self._stop()
        self.up = False
        self.touched(self)
        self.env.timeout(seconds).callbacks.append(self._rise)
        for job in gone:
            self.lost(job)

    def unload(self) -> None:
        """Give the device to another of the group: what is in flight is finished first."""
        self.resident = False
        self.touched(self)

    def load_again(self) -> None:
        """Resident, with nothing cached."""
        self.resident = True
        self.held.clear()
        self.touched(self)

    def _rise(self, _event: object) -> None:
        self.up = True
        self.touched(self)

    def _stop(self) -> None:
        self._running.clear()
        self.waiting.clear()
        self.held.clear()
        self._turn += 1

    def _start(self, job: Job) -> None:
        self._advance()
        job.started_at = self.env.now
        job.busy_before = self._busy
        job.fresh_tokens = max(1, job.prompt_tokens - self.cached(job.session))
        speed = self.lone_speed(job.turn.workload_class) * math.exp(job.turn.noise)
        job.decode_work = (job.turn.tokens - 1) / speed
        self._push(job, job.fresh_tokens / self.spec.prompt_speed)

    def _push(self, job: Job, work: float) -> None:
        self._count += 1
        heapq.heappush(self._running, (self._lone + work, self._count, job))
        self._plan()

    def _advance(self) -> None:
        if self._running:
            passed, parallel = self.env.now - self._since, len(self._running)
            self._lone += passed * self.share(parallel)
            self._busy += passed * parallel
        self._since = self.env.now

    def _plan(self) -> None:
        """Wake when the next request comes to the end of its phase; older plans are void."""
        self._turn += 1
        turn = self._turn
        left = max(0.0, self._running[0][0] - self._lone) / self.share(len(self._running))
        self.env.timeout(left).callbacks.append(lambda _event: self._due(turn))

    def _due(self, turn: int) -> None:
        if turn != self._turn:
            return
        self._advance()
        _, _, job = heapq.heappop(self._running)
        if job.decoding_at is None:
            job.decoding_at = self.env.now
            self._push(job, job.decode_work)
            return
        self._hold(job)
        if self.waiting:
            self._start(self.waiting.popleft())
        elif self._running:
            self._plan()
        self.touched(self)
        self.done(job, self)

    def _hold(self, job: Job) -> None:
        self.held[job.session] = job.prompt_tokens + job.turn.tokens
        self.held.move_to_end(job.session)
        while len(self.held) > self.spec.cache:
            self.held.popitem(last=False)
