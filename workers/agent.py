"""One host's workers: starts a supervisor for each, publishes records, passes on orders.

The registry may be away for a while: workers go on, and their records follow when it is back.
"""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import structlog

from workers.attached import Attached
from workers.backoff import Backoff
from workers.launching import Host
from workers.plan import difference, must_leave_for, resident_at_start
from workers.registry.base import RegistryUnavailable, Verb
from workers.state import WorkerState
from workers.supervisor import Supervisor
from workers.vitals import Vitals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from workers.clock import Clock
    from workers.record import WorkerRecord
    from workers.registry.base import Command, Registry
    from workers.spec import WorkerSpec

log = structlog.get_logger(__name__)

_STALE_S = 60.0  # an order older than this came late, or is replayed
_RETRY_S = 1.0
_SETTLED = (
    *(state for state in WorkerState if state.serves),
    *(WorkerState.DRAINING, WorkerState.BACKOFF, WorkerState.QUARANTINED, WorkerState.FAILED),
)


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How this host runs its workers. Times in seconds; `environ` becomes the workers'."""

    state_dir: Path
    cluster_secret: str
    environ: Mapping[str, str]
    host: str = field(default_factory=socket.gethostname)
    heartbeat: float = 1.0
    drain_timeout: float = 30.0
    stop_timeout: float = 5.0
    backoff: Backoff = field(default_factory=Backoff)
    seed: int | None = None  # of the jitter


async def run_agent(
    specs: Sequence[WorkerSpec],
    registry: Registry,
    options: AgentOptions,
    clock: Clock,
    stop: asyncio.Event | None = None,
) -> None:
    """Run and supervise workers until `stop` is set, then drain and end them all.

    Cancelling ends them too, without the drain.
    """
    await Agent(specs, registry, options, clock).run(stop or asyncio.Event())


class Agent:
    """The state behind `run_agent`."""

    def __init__(
        self,
        specs: Sequence[WorkerSpec],
        registry: Registry,
        options: AgentOptions,
        clock: Clock,
    ) -> None:
        self._specs = tuple(specs)
        self._registry = registry
        self._options = options
        self._clock = clock
        self._changed: dict[str, WorkerRecord] = {}
        self._wake = asyncio.Event()
        self._vitals = Vitals(options.environ.get("PATH", ""), clock)
        self._over = False  # a cancellation alone can be lost in a Redis client that reconnects
        self._seen: set[str] = set()  # nonces of orders that were obeyed
        host = Host(
            name=options.host,
            state_dir=options.state_dir,
            cluster_secret=options.cluster_secret,
            environ=options.environ,
            clock=clock,
            rng=random.Random(options.seed),  # noqa: S311 - jitter
            backoff=options.backoff,
            drain_timeout=options.drain_timeout,
            stop_timeout=options.stop_timeout,
        )
        self._host = host
        self._workers: dict[str, Supervisor | Attached] = {}
        self._present: dict[str, WorkerSpec] = {}  # what each of them runs as
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._reloading = asyncio.Lock()
        self._outdated = asyncio.Event()  # of the latest reload: set when a newer one comes
        self._awaited: dict[str, float] = {}  # by name: replaced, and until when it may load
        self._ending = False  # told to stop: nothing is begun any more

    async def run(self, stop: asyncio.Event) -> None:
        """Start everything; return when every worker has ended after `stop`."""
        async with asyncio.TaskGroup() as service:
            helpers = [
                service.create_task(self._keep_publishing()),
                service.create_task(self._keep_obeying(service)),
            ]
            resident = resident_at_start(self._specs)
            async with asyncio.TaskGroup() as running:
                self._family = running
                for spec in self._specs:
                    self._begin(spec, start=spec.name in resident)
                running.create_task(self._pass_on(stop))
            self._over = True
            for helper in helpers:
                helper.cancel()
        await self._say_goodbye()

    def _begin(self, spec: WorkerSpec, *, start: bool) -> None:
        if self._ending:
            return
        kind = Supervisor if spec.managed else Attached
        worker = self._workers[spec.name] = kind(spec, self._host, self._publish)
        self._present[spec.name] = spec
        self._lives[spec.name] = self._family.create_task(worker.run(start=start))

    async def reload(self, specs: Sequence[WorkerSpec]) -> None:
        """Another configuration: only workers that changed are drained and replaced, one by one.

        A newer one is taken at once: it ends this one's waits and goes on from what is there.
        """
        self._outdated.set()
        outdated = self._outdated = asyncio.Event()
        async with self._reloading:
            if outdated.is_set():
                return
            changes = difference(tuple(self._present.values()), specs)
            self._specs = tuple(specs)
            for spec in changes.adopted:
                self._workers[spec.name].adopt(spec)
                self._present[spec.name] = spec
            resident = resident_at_start(self._specs)
            for spec in changes.new:
                self._begin(spec, start=spec.name in resident)
            for name in changes.gone:
                if outdated.is_set():
                    return
                await self._retire(name)
                await self._forget(name)
            await self._replace(changes.changed, outdated)

    async def _replace(self, specs: Sequence[WorkerSpec], outdated: asyncio.Event) -> None:
        """What does not serve first, as nobody misses it; then one serving worker at a time."""
        for spec in sorted(specs, key=self._serves):
            if self._serves(spec):
                await self._settled(outdated)
            if outdated.is_set():
                return
            started = self._to_start(spec.name)
            await self._retire(spec.name)
            self._begin(spec, start=started)
            if started and spec.name in self._workers:  # else the agent is ending
                self._awaited[spec.name] = self._clock.monotonic() + spec.load_timeout
        await self._settled(outdated)

    def _to_start(self, name: str) -> bool:
        """What runs, or is about to; and what failed, as the new configuration may mend it."""
        running = self._running()
        if self._workers[name].status.state in (WorkerState.FAILED, WorkerState.QUARANTINED):
            return not must_leave_for(name, self._specs, running)
        return name in self._awaited or name in running

    def _serves(self, spec: WorkerSpec) -> bool:
        return self._workers[spec.name].status.state.serves

    async def _retire(self, name: str) -> None:
        """Drained and ended."""
        self._workers[name].stop()
        await asyncio.wait([self._lives.pop(name)])
        self._awaited.pop(name, None)
        del self._workers[name], self._present[name]

    async def _forget(self, name: str) -> None:
        self._changed.pop(name, None)
        try:
            await self._registry.remove(name)
        except RegistryUnavailable as error:
            log.warning("registry_unavailable", reason=str(error))

    async def _settled(self, outdated: asyncio.Event) -> None:
        """Until each replaced worker serves or has failed: the next one must not leave before."""
        if self._unsettled():
            log.info("reload_waits", workers=self._unsettled())
        while self._unsettled() and not (self._ending or outdated.is_set()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    def _unsettled(self) -> list[str]:
        now = self._clock.monotonic()
        for name, until in tuple(self._awaited.items()):
            if now >= until or self._workers[name].status.state in _SETTLED:
                del self._awaited[name]
        return list(self._awaited)

    async def _pass_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._ending = True
        for worker in self._workers.values():
            worker.stop()

    def _publish(self, record: WorkerRecord) -> None:
        """Called by supervisors, which must not wait for Redis."""
        self._changed[record.name] = record
        self._wake.set()

    async def _keep_publishing(self) -> None:
        """Changes at once, everything else once per heartbeat."""
        while not self._over:
            try:
                await self._publish_changes()
                async with asyncio.timeout(self._options.heartbeat):
                    await self._wake.wait()
            except TimeoutError:
                await self._beat()
            except RegistryUnavailable as error:
                log.warning("registry_unavailable", reason=str(error))
                await asyncio.sleep(_RETRY_S)

    async def _publish_changes(self) -> None:
        self._wake.clear()
        for name, record in tuple(self._changed.items()):
            await self._registry.publish(record)
            if self._changed.get(name) is record:  # else it changed again meanwhile
                del self._changed[name]

    async def _beat(self) -> None:
        now = self._clock.wall()
        await self._vitals.refresh()
        try:
            for worker in tuple(self._workers.values()):
                record = worker.status.record
                told = replace(record, heartbeat_at=now, **self._vitals.of(record))
                await self._registry.heartbeat(told)
        except RegistryUnavailable as error:
            log.warning("registry_unavailable", reason=str(error))

    async def _keep_obeying(self, tasks: asyncio.TaskGroup) -> None:
        while not self._over:
            try:
                async with aclosing(self._registry.commands()) as commands:
                    async for command in commands:
                        if self._accepts(command):
                            tasks.create_task(self._obey(command))
            except RegistryUnavailable:
                await asyncio.sleep(_RETRY_S)

    def _accepts(self, command: Command) -> bool:
        """Only fresh orders about our own workers, each once."""
        if command.worker not in self._workers or command.nonce in self._seen:
            return False
        if abs(self._clock.wall() - command.issued_at) > _STALE_S:
            log.warning("order_stale", worker=command.worker, verb=command.verb.value)
            return False
        self._seen.add(command.nonce)
        return True

    async def _obey(self, command: Command) -> None:
        log.info("order", worker=command.worker, verb=command.verb.value)
        if command.verb in (Verb.LOAD, Verb.RESTART):
            await self._make_room(command.worker)
        worker = self._workers.get(command.worker)
        if worker is not None:  # else a reload took it away meanwhile
            worker.order(command.verb)

    async def _make_room(self, name: str) -> None:
        """Unload the worker of the same exclusive group, and wait until it is gone."""
        leaving = must_leave_for(name, self._specs, self._running())
        for other in leaving:
            self._workers[other].order(Verb.UNLOAD)
        while set(leaving) & set(self._running()):  # noqa: ASYNC110 - as the table of states tells
            await asyncio.sleep(0.1)

    def _running(self) -> list[str]:
        at_rest = (WorkerState.STOPPED, WorkerState.FAILED, WorkerState.QUARANTINED)
        return [n for n, worker in self._workers.items() if worker.status.state not in at_rest]

    async def _say_goodbye(self) -> None:
        """Take our records away, so that nobody waits for them to expire."""
        try:
            for name in tuple(self._workers):
                await self._registry.remove(name)
        except RegistryUnavailable as error:
            log.warning("registry_unavailable", reason=str(error))
