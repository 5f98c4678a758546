"""A server that somebody else runs: looked at, published, never started or stopped."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING

from workers import health
from workers.engines import engine_of
from workers.registry.base import Verb
from workers.state import WorkerEvent, WorkerState
from workers.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from workers.launching import Host
    from workers.record import WorkerRecord
    from workers.spec import WorkerSpec

_LOOK_S = 2.0
_MISSES = 3  # looks without an answer in a row: a busy server may be slow to say it is well


class Attached:
    """The same face as a Supervisor, for a `url`."""

    def __init__(
        self, spec: WorkerSpec, host: Host, publish: Callable[[WorkerRecord], None]
    ) -> None:
        self._spec = spec
        self._host = host
        self._engine = engine_of(spec)
        self._inbox: asyncio.Queue[Verb | Enum] = asyncio.Queue()
        self._held = False
        self._misses = 0
        self.status = Status(
            spec, host.clock, publish, host=host.name, features=self._engine.features
        )

    def order(self, verb: Verb) -> None:
        """Queue an order; load and unload mean undrain and drain here."""
        self.status.hold(verb.holds)
        self._inbox.put_nowait(verb)

    def adopt(self, spec: WorkerSpec) -> None:
        """Take over what needs no other process: see plan.difference."""
        self._spec = spec
        self.status.adopt(spec)

    def stop(self) -> None:
        """Let `run` return; the server goes on."""
        self._inbox.put_nowait(_Stop.STOP)

    async def run(self, *, start: bool) -> None:
        """Look every two seconds until `stop`."""
        self._held = not start
        async with health.client(self._spec.url or "", self._spec.api_key) as http:
            self.status.advance(WorkerEvent.SPAWN)
            while True:
                self._note(await health.look(http, self._engine.routes))
                order = await self._order()
                if order is _Stop.STOP:
                    break
                if order is not None and order is not Verb.PROBE:
                    self._held = order in (Verb.DRAIN, Verb.UNLOAD)
        self.status.advance(WorkerEvent.STOP)

    def _note(self, seen: health.Health) -> None:
        """Move by what was seen and by whether an operator holds it back."""
        state = self.status.state
        self._misses = 0 if seen.loaded else self._misses + 1
        if seen.loaded and state in (WorkerState.STARTING, WorkerState.BACKOFF):
            self._found(seen)
        elif state is WorkerState.STARTING or state is WorkerState.BACKOFF:
            self.status.update(reason=f"no healthy server at {self._spec.url}")
        elif self._misses >= _MISSES:
            self.status.advance(WorkerEvent.EXITED, reason=f"{self._spec.url} does not answer")
        elif self._held and state.serves:
            self.status.advance(WorkerEvent.DRAIN)
        elif not self._held and state is WorkerState.DRAINING:
            self.status.advance(WorkerEvent.UNDRAIN)

    def _found(self, seen: health.Health) -> None:
        record = self.status.record
        again = self.status.state is WorkerState.BACKOFF
        events = [WorkerEvent.SPAWN] if again else []
        self.status.advance(
            *events,
            WorkerEvent.LOADED,
            reason="",
            progress=1.0,
            started_at=self._host.clock.wall(),
            restarts=record.restarts + again,
            slots=seen.slots or record.slots,
            context=min(record.context, seen.context or record.context),
            build=seen.build,
        )

    async def _order(self) -> Verb | Enum | None:
        try:
            async with asyncio.timeout(_LOOK_S):
                return await self._inbox.get()
        except TimeoutError:
            return None


class _Stop(Enum):
    STOP = "stop"
