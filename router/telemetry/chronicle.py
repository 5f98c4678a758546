"""Keeps the dashboard's history: a sink on the recorder, and the task that writes once a second.

Nothing here is on the request path, and what dashboards read never costs a gateway anything.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson
import structlog

from router.core.outcome import Status
from router.telemetry.decision_log import row
from router.telemetry.grounds import grounds_of
from router.telemetry.happenings import Happening, Noticer
from router.telemetry.history import Book
from router.telemetry.history_store import Batch, HistoryUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from router.core import Outcome
    from router.telemetry.collapse import Collapse
    from router.telemetry.grounds import Explain
    from router.telemetry.knowledge import Alarm
    from workers.clock import Clock
    from workers.record import WorkerRecord

log = structlog.get_logger(__name__)

INTERVAL_S: Final = 1.0
SAMPLED: Final = 20
"""Decisions kept of each interval; failures have places of their own beside them."""

HAPPENINGS_WAITING: Final = 500


class Store(Protocol):
    """Where batches go."""

    async def write(self, batch: Batch) -> None:
        """Raises HistoryUnavailable: write the same batch again."""
        ...


@dataclass(frozen=True, slots=True)
class Sight:
    """What a gateway sees at one instant, beside finished requests."""

    workers: Sequence[WorkerRecord] = ()
    alarms: Sequence[Alarm] = ()
    collapses: Sequence[Collapse] = ()
    policy: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)  # published as it is


class Chronicle:
    """One per gateway."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        gateway: str,
        look: Callable[[], Sight],
        explain: Explain = lambda features: (),
    ) -> None:
        """`explain` says what the classifier went by; it is asked for the sampled requests only."""
        self._explain = explain
        self._store = store
        self._clock = clock
        self._gateway = gateway
        self._look = look
        self._noticer = Noticer()
        self._book = Book()
        self._decisions: list[bytes] = []
        self._failures: list[bytes] = []
        self._happenings: list[Happening] = []
        self._number = 0
        self._sending: Batch | None = None

    def record(self, outcome: Outcome) -> None:
        """Count one finished request; keep its decision if there is room in the sample."""
        self._book.add(outcome)
        switch = self._noticer.choice(outcome)
        if switch is not None:
            self._happenings.append(switch)
        ended_well = outcome.status in (Status.OK, Status.CLIENT_GONE)
        sample = self._decisions if ended_well else self._failures
        if len(sample) < SAMPLED:
            grounds = grounds_of(outcome, self._explain)
            sample.append(orjson.dumps(row(outcome) | {"grounds": grounds}))

    async def run(self) -> None:
        """Write every second until cancelled; what waits then is written once more."""
        ended: BaseException | None = None
        while ended is None:
            try:
                await self.flush()
                await asyncio.sleep(INTERVAL_S)
            except BaseException as error:  # noqa: BLE001 - raised again below
                ended = error
        async with asyncio.timeout(INTERVAL_S):
            await self.flush()
        raise ended

    async def flush(self) -> bool:
        """Write what waits; False while Redis is away."""
        self._notice()
        if self._sending is None:
            self._sending = self._take()
        try:
            await self._store.write(self._sending)
        except HistoryUnavailable as error:
            log.debug("history_unavailable", reason=str(error))
            return False
        self._sending = None
        return True

    def _notice(self) -> None:
        sight, now = self._look(), self._clock.wall()
        names = {record.spec_hash: record.name for record in sight.workers}
        self._happenings += self._noticer.workers(sight.workers, now)
        self._happenings += self._noticer.alarms(sight.alarms, names)
        self._happenings += self._noticer.collapses(sight.collapses)
        self._happenings += self._noticer.policy(sight.policy, now)
        del self._happenings[:-HAPPENINGS_WAITING]
        self._status = {"at": now, "policy": sight.policy, **sight.status}

    def _take(self) -> Batch:
        self._number += 1
        batch = Batch(
            self._gateway,
            self._number,
            self._book.slices,
            [*self._decisions, *self._failures],
            tuple(self._happenings),
            self._status,
        )
        self._book = Book()
        self._decisions, self._failures, self._happenings = [], [], []
        return batch
