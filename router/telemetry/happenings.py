"""What an operator wants marked on a time line: restarts, switches, alarms; pure.

A gateway compares what it sees now with what it saw before. Several gateways see the same things,
so every happening has a `digest` by which the store keeps the first report only.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from router.core.decision import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from router.core import Outcome
    from router.telemetry.collapse import Collapse
    from router.telemetry.knowledge import Alarm
    from workers.record import WorkerRecord

VOTES: Final = 20
"""Free choices over which a class's usual worker is told; its majority must be clear."""

MAJORITY: Final = 0.7


class Kind(StrEnum):
    """What happened."""

    STATE = "state"  # a worker's state changed
    RESTART = "restart"
    GONE = "gone"
    ALARM = "alarm"  # the change detector raised on a worker's speed for a class
    COLLAPSE = "collapse"  # drafting got worse or better, and what that has to do with
    SWITCH = "switch"  # a class's usual worker changed
    POLICY = "policy"  # an operator changed the policy


@dataclass(frozen=True, slots=True)
class Happening:
    """One mark. `at` is Unix seconds; the other fields are empty where they say nothing."""

    at: float
    kind: Kind
    worker: str = ""
    model: str = ""
    workload_class: str = ""
    before: str = ""
    after: str = ""
    reason: str = ""
    sequence: str = ""  # tells apart equal things that happen twice

    @property
    def digest(self) -> str:
        """Equal for the same happening reported by several gateways."""
        parts = (self.kind, self.worker, self.model, self.workload_class, self.after)
        return "|".join((*parts, self.sequence))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, empty ones left out."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value != ""}


@dataclass(slots=True)
class Noticer:
    """Remembers what was seen last."""

    _records: dict[str, WorkerRecord] = field(default_factory=dict)
    _votes: dict[tuple[str, str], deque[str]] = field(default_factory=dict)
    _usual: dict[tuple[str, str], str] = field(default_factory=dict)
    _policy: str = ""
    _alarms: float = 0.0  # wall time of the last alarm told
    _collapses: float = 0.0

    def workers(self, records: Iterable[WorkerRecord], now: float) -> Iterator[Happening]:
        """What has changed among the workers."""
        found = {record.name: record for record in records}
        for name, record in found.items():
            before = self._records.get(name)
            if before is not None:
                yield from _changes(before, record, now)
        for name in self._records.keys() - found.keys():
            gone = self._records[name]
            yield Happening(
                now, Kind.GONE, name, gone.model, before=gone.state.value, sequence=_life(gone)
            )
        self._records = found

    def alarms(self, alarms: Iterable[Alarm], names: Mapping[str, str]) -> Iterator[Happening]:
        """Alarms not told yet; `names` are workers by spec hash."""
        fresh = [alarm for alarm in alarms if alarm.wall_time > self._alarms]
        for alarm in fresh:
            worker = names.get(alarm.worker_key.partition("~")[0], "")
            minute = str(int(alarm.wall_time // 60))
            yield Happening(
                alarm.wall_time,
                Kind.ALARM,
                worker,
                alarm.model,
                alarm.workload_class,
                sequence=minute,
            )
        self._alarms = max([self._alarms, *(alarm.wall_time for alarm in fresh)])

    def collapses(self, collapses: Iterable[Collapse]) -> Iterator[Happening]:
        """Explained changes of drafting not told yet: what changed, by what factor, where."""
        fresh = [one for one in collapses if one.wall_time > self._collapses]
        for one in fresh:
            yield Happening(
                one.wall_time,
                Kind.COLLAPSE,
                model=one.model,
                workload_class=one.value if one.dimension == "class" else "",
                before=f"{one.dimension} {one.value}",
                after=f"{one.factor:.2f}",
                reason=one.metric,
                sequence=str(int(one.wall_time // 60)),
            )
        self._collapses = max([self._collapses, *(one.wall_time for one in fresh)])

    def policy(self, name: str, now: float) -> Iterator[Happening]:
        """A change of the policy."""
        if self._policy and name != self._policy:
            minute = str(int(now // 60))
            yield Happening(now, Kind.POLICY, before=self._policy, after=name, sequence=minute)
        self._policy = name

    def choice(self, outcome: Outcome) -> Happening | None:
        """A change of the worker that a class usually gets, as far as free choices tell."""
        what, decision = outcome.classification, outcome.decision
        if what is None or decision is None or decision.reason is not Reason.PREDICTED_FASTEST:
            return None
        key = (outcome.model, str(what.workload_class))
        votes = self._votes.setdefault(key, deque(maxlen=VOTES))
        votes.append(decision.worker)
        if decision.worker == self._usual.get(key):
            return None  # one more for whom it was: nobody else can have come to lead
        leader = max(set(votes), key=votes.count)
        if len(votes) < VOTES or votes.count(leader) < MAJORITY * VOTES:
            return None
        before, self._usual[key] = self._usual.get(key, ""), leader
        if not before or before == leader:
            return None
        return Happening(
            outcome.wall_time,
            Kind.SWITCH,
            model=outcome.model,
            workload_class=key[1],
            before=before,
            after=leader,
            sequence=str(int(outcome.wall_time // 60)),
        )


def _changes(before: WorkerRecord, now: WorkerRecord, at: float) -> Iterator[Happening]:
    if now.restarts > before.restarts:
        why, number = now.crash or now.reason, str(now.restarts)
        yield Happening(at, Kind.RESTART, now.name, now.model, reason=why, sequence=number)
    if now.state is not before.state:
        yield Happening(
            at,
            Kind.STATE,
            now.name,
            now.model,
            before=before.state.value,
            after=now.state.value,
            reason=now.reason,
            sequence=f"{_life(now)}.{int(at // 5)}",
        )


def _life(record: WorkerRecord) -> str:
    return f"{record.started_at:.0f}.{record.restarts}"
