"""Swaps of exclusive groups: learns from outcomes, looks at who waits, and orders what is planned.

The agent of the group's host carries an order out: it drains the resident, however long its
streams take, unloads it and loads the other. Several gateways plan from their own traffic each, and
accept each other's swaps; what an operator has drained is nobody's to load.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from router.policy.residency import Member, Residency
from workers.registry.base import Command, RegistryUnavailable, Verb
from workers.state import WorkerState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from router.core import Outcome, RoutingDecision, WorkerSnapshot
    from router.fleet import Fleet
    from workers.clock import Clock
    from workers.registry import Registry

log = structlog.get_logger(__name__)

LOOK_S: Final = 0.25
_SETTLE_S: Final = 5.0  # in which an order shows in the records, or was lost
_FOLLOWS_S: Final = 1.0  # between one that leaves and one that comes: somebody else's swap
_HEARD_S: Final = 2.5  # until other gateways' requests on a worker are known here
_REMEMBERED_S: Final = 600.0  # a conversation that was silent for longer needs no cache
_CONVERSATIONS: Final = 256
_MOVING: Final = (
    *(WorkerState.STARTING, WorkerState.LOADING),
    *(WorkerState.DRAINING, WorkerState.BACKOFF),
)
_OUT_OF_ORDER: Final = (WorkerState.FAILED, WorkerState.QUARANTINED)

GroupName = tuple[str, str]
"""Host and group: workers of other hosts have memory of their own."""


@dataclass(slots=True)
class Group:
    """One group's plan, what its resident holds, and the last order."""

    plan: Residency = field(default_factory=Residency)
    held: OrderedDict[str, tuple[str, float, float]] = field(default_factory=OrderedDict)
    quiet_until: float = 0.0
    taken_at: float = -math.inf
    resident: str = ""  # as last seen,
    ordered: str = ""  # and as last ordered
    busy_until: float = 0.0  # the resident is somebody else's choice: they have requests for it
    served_s: float = 0.0

    def hold(self, conversation: str, worker: str, prefill_s: float, now: float) -> None:
        """A worker has this conversation in its cache; reading it anew would take `prefill_s`."""
        self.held[conversation] = (worker, prefill_s, now)
        self.held.move_to_end(conversation)
        if len(self.held) > _CONVERSATIONS:
            self.held.popitem(last=False)

    def seen(self, resident: str, now: float) -> None:
        """Who is resident; a new one that was not ordered here is somebody else's choice."""
        if resident and self.resident and resident not in (self.resident, self.ordered):
            self.plan.accept(resident)
            self.busy_until = now + _HEARD_S
        if resident and resident == self.ordered:
            self.quiet_until = now  # the order has been carried out
        if resident:
            self.resident, self.ordered = resident, ""

    def cache_s(self, worker: str, now: float) -> float:
        """Seconds of prefill that the worker's cache is worth."""
        rows = self.held.values()
        return sum(s for who, s, at in rows if who == worker and now - at < _REMEMBERED_S)


class Swaps:
    """One task, and a sink of outcomes."""

    def __init__(
        self,
        fleet: Fleet,
        waiting: Callable[[], Iterable[tuple[RoutingDecision, float]]],
        registry: Registry,
        clock: Clock,
    ) -> None:
        """`waiting` gives what each request in the queue would have, and for how long it waited."""
        self._fleet = fleet
        self._waiting = waiting
        self._registry = registry
        self._clock = clock
        self._groups: dict[GroupName, Group] = {}

    def record(self, outcome: Outcome) -> None:
        """Note what a finished request would have taken on each member."""
        decision = outcome.decision
        if not self._fleet.has_groups or decision is None or not outcome.timings.predicted_n:
            return
        for name, workers in self._members().items():
            if all(worker.name != outcome.worker for worker in workers):
                continue
            group, names = self._groups[name], {worker.name for worker in workers}
            group.plan.note(
                _costs(decision, names), outcome.worker, {w.name: w.record.load_s for w in workers}
            )
            group.served_s += outcome.total_s - outcome.queue_s
            self._note_cache(group, outcome)

    def _note_cache(self, group: Group, outcome: Outcome) -> None:
        timings = outcome.timings
        if outcome.conversation and timings.prompt_n and timings.prompt_ms and timings.cache_n:
            per_token = timings.prompt_ms / 1000.0 / timings.prompt_n
            tokens = outcome.context_tokens or 0
            now = self._clock.monotonic()
            group.hold(outcome.conversation, outcome.worker, per_token * tokens, now)

    async def run(self) -> None:
        """Look and order for ever."""
        while True:
            try:
                await self.look()
            except RegistryUnavailable as error:
                log.warning("swap_not_ordered", error=str(error))
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Order what each group's plan wants now."""
        now = self._clock.monotonic()
        for name, workers in self._members().items():
            group = self._groups[name]
            resident = next((w.name for w in workers if w.record.state.serves), "")
            if now < group.quiet_until and resident != group.ordered:
                continue
            group.seen(resident, now)
            if resident or any(w.record.state in _MOVING for w in workers):
                group.taken_at = now
            elif now - group.taken_at < _FOLLOWS_S:
                continue
            members = self._seen(workers, busy=now < group.busy_until)
            swap = group.plan.decide(members, group.cache_s(resident, now), now)
            if swap is None:
                continue
            order = Command(Verb.LOAD, swap.name, self._clock.wall(), secrets.token_hex(16))
            await self._registry.send(order)
            group.quiet_until, group.ordered = now + _SETTLE_S, swap.name
            group.plan.spent_s += swap.price_s
            log.info(
                "swap", load=swap.name, unload=resident, because=swap.because, **_advice(group)
            )

    def _members(self) -> Mapping[GroupName, list[WorkerSnapshot]]:
        """The groups, without members that cannot run at all, or are not to."""
        found: dict[GroupName, list[WorkerSnapshot]] = {}
        for worker in self._fleet.everything():
            record = worker.record
            out = record.held or record.state in _OUT_OF_ORDER
            if record.exclusive_group is not None and not out:
                name = (record.host, record.exclusive_group)
                self._groups.setdefault(name, Group())
                found.setdefault(name, []).append(worker)
        return found

    def _seen(self, workers: list[WorkerSnapshot], *, busy: bool) -> list[Member]:
        queues: dict[str, list[tuple[RoutingDecision, float]]] = {w.name: [] for w in workers}
        for decision, waited in self._waiting():
            if decision.worker in queues:
                queues[decision.worker].append((decision, waited))
        return [_member(worker, queues[worker.name], busy=busy) for worker in workers]


def _costs(decision: RoutingDecision, names: set[str]) -> dict[str, float]:
    """Predicted seconds of work on each, by its best arm."""
    costs: dict[str, float] = {}
    for row in decision.candidates:
        if row.estimate is not None and row.worker in names:
            seconds = row.estimate.prefill_s + row.estimate.decode_s
            costs[row.worker] = min(seconds, costs.get(row.worker, seconds))
    return costs


def _member(
    worker: WorkerSnapshot, queue: list[tuple[RoutingDecision, float]], *, busy: bool
) -> Member:
    state = worker.record.state
    estimates = (decision.estimate() for decision, _ in queue)
    return Member(
        name=worker.name,
        load_s=worker.record.load_s,
        resident=state.serves,
        moving=state in _MOVING,
        in_flight=max(worker.occupancy, int(busy)),
        wanting=len(queue),
        wanting_work_s=sum(e.prefill_s + e.decode_s for e in estimates if e is not None),
        waited_s=max((waited for _, waited in queue), default=0.0),
    )


def _advice(group: Group) -> dict[str, object]:
    """What a second GPU, with both resident, would have brought so far."""
    lost, served = group.plan.second_gpu_saves_s, group.served_s
    share = lost / (served + group.plan.spent_s) if served else 0.0
    saved = f"a second GPU would have saved {lost:.1f} s, {share:.0%} of the time"
    return {"price_s": round(group.plan.spent_s, 1), "advice": saved}
