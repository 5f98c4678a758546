"""The fleet as seen at one instant: choosing never looks at live objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from classifier.quick import quick

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workers.arms import Arm
    from workers.record import WorkerRecord


@quick
@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """One worker at one instant.

    `slots` is what this gateway may use (its lease), never more than the record's. `in_flight`
    counts this gateway's reservations, `total_in_flight` those of all gateways as last heard.
    `remaining_tokens` are the expected output tokens left of this gateway's requests in flight.
    `arm` is a draft length to ask it for; None asks for what it was started with.
    """

    record: WorkerRecord
    slots: int
    in_flight: int = 0
    total_in_flight: int = 0
    remaining_tokens: tuple[float, ...] = ()
    available: bool = True  # False: breaker open, or stale heartbeat
    unavailable_reason: str = ""
    arm: Arm | None = None

    @property
    def mode(self) -> str:
        """The mode it would answer in."""
        return self.record.effective_mode if self.arm is None else self.arm.mode

    @property
    def speed_key(self) -> str:
        """What its learned speed is kept under."""
        record, arm = self.record, self.arm
        return record.speed_key if arm is None else record.spec_hash + arm.key

    @property
    def name(self) -> str:
        """The worker's configured name."""
        return self.record.name

    @property
    def free_slots(self) -> int:
        """Slots that this gateway may still take."""
        return max(0, self.slots - self.in_flight)

    @property
    def occupancy(self) -> int:
        """Requests decoding at once on this worker, as far as this gateway knows."""
        return max(self.in_flight, self.total_in_flight)


@quick
@dataclass(frozen=True, slots=True)
class FleetView:
    """All workers of one model, in a stable order.

    `busy` counts the workers of each host that have anything in flight, of whatever model.
    """

    model: str
    workers: tuple[WorkerSnapshot, ...]
    busy: Mapping[str, int] = field(default_factory=dict)

    def beside(self, worker: WorkerSnapshot) -> int:
        """How many of the other workers of that worker's host are busy."""
        host = worker.record.host
        return max(0, self.busy.get(host, 0) - (worker.occupancy > 0)) if host else 0

    def find(self, name: str) -> WorkerSnapshot | None:
        """The worker of that name, or None."""
        return next((w for w in self.workers if w.name == name), None)
