"""One worker kept alive: one task, one inbox, sole writer of the worker's state.

Everything that happens to the worker is a message to the inbox: orders, the exit of its process,
the result of its start probe. So no two things happen at once, and an order can never act on a
process that has just been replaced.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workers import arms, health
from workers.drafting import Drafting, DraftWatch
from workers.engines import EngineMissing, engine_of
from workers.inbox import Ending, Exited, Internal, Message, Probed
from workers.launching import Unusable, prepare
from workers.process import Process, spawn
from workers.registry.base import Verb
from workers.state import WorkerEvent, WorkerState
from workers.status import Status
from workers.verdict import Cause, Verdict, judge
from workers.watchdog import Sighting, Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from workers.launching import Host, Launch
    from workers.record import WorkerRecord
    from workers.spec import WorkerSpec

_POLL_S = 0.1  # between looks while it loads
_DOUBT_S = 5.0  # between probes that a gateway asks for
_DOUBTS = 2  # bad answers in a row that end a worker which a gateway doubts
_ASK_AGAIN_S = 60.0  # between probes of a serving worker: each costs it 64 tokens
_LOOK_S = 2.0  # between looks while it serves
_DRAIN_POLL_S = 0.2
_IDLE_LOOKS = 2  # quiet looks in a row that count as idle: a request may just be under way


class Supervisor:
    """Starts, probes, watches, drains, restarts and stops one llama-server."""

    def __init__(
        self, spec: WorkerSpec, host: Host, publish: Callable[[WorkerRecord], None]
    ) -> None:
        self._spec = spec
        self._host = host
        self._engine = engine_of(spec)
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._crashes: tuple[float, ...] = ()
        self._wanted = False
        self._stopping = False
        self._pause: float | None = None  # seconds until the next start; None waits for an order
        self._ready_at: float | None = None  # monotonic; of the present life
        self._asked_at = -math.inf  # when a serving worker was last asked to draft
        self._begun_at = 0.0
        self.status = Status(
            spec, host.clock, publish, host=host.name, features=self._engine.features
        )

    def order(self, verb: Verb) -> None:
        """Queue an order."""
        self.status.hold(verb.holds)
        self._inbox.put_nowait(verb)

    def adopt(self, spec: WorkerSpec) -> None:
        """Take over what needs no other process: see plan.difference."""
        self._spec = spec
        self.status.adopt(spec)

    def stop(self) -> None:
        """Finish what is running, end the process, and let `run` return."""
        self._inbox.put_nowait(Internal.STOP)

    async def run(self, *, start: bool) -> None:
        """Until `stop`; with `start` false it waits to be loaded."""
        self._wanted = start
        while not self._stopping:
            if self._wanted:
                await self._live()
            else:
                await self._rest()
        if self.status.state is not WorkerState.STOPPED:
            self.status.advance(WorkerEvent.STOP, pid=None)

    @property
    def _alone(self) -> bool:
        """Whether it may start without making room: else it is loaded when somebody wants it."""
        return self._spec.exclusive_group is None

    async def _rest(self) -> None:
        """Not running: wait out a backoff, or for an order."""
        message = await self._message(self._pause)
        if message is None:
            self._wanted = True
        elif message is Internal.STOP:
            self._stopping = True
        elif message in (Verb.LOAD, Verb.RESTART) or (message is Verb.UNDRAIN and self._alone):
            self._wanted, self._crashes = True, ()
        elif message is Verb.UNLOAD:
            self._pause = None
            self.status.advance(WorkerEvent.STOP, pid=None, reason="unloaded")

    async def _live(self) -> None:
        """From start to end of one process."""
        self._pause = self._ready_at = None
        self._begun_at = self._host.clock.monotonic()
        try:
            launch = await prepare(self._spec, self._engine, self._host)
            self.status.advance(WorkerEvent.SPAWN, **_newborn(launch, self._spec))
            process = await spawn(launch.argv, launch.env, launch.log_path)
        except (Unusable, EngineMissing, OSError) as error:
            self._wanted = False
            self.status.advance(WorkerEvent.UNUSABLE, reason=str(error), pid=None)
            return
        self.status.update(pid=process.pid, started_at=self._host.clock.wall())
        async with (
            asyncio.TaskGroup() as tasks,
            health.client(launch.url, launch.api_key) as http,
        ):
            tasks.create_task(self._report_exit(process))
            try:
                ending = await self._attend(process, http, tasks, launch)
            finally:
                returncode = await process.stop(self._host.stop_timeout)
        self._bury(process, ending, returncode)

    async def _attend(
        self, process: Process, http: httpx.AsyncClient, tasks: asyncio.TaskGroup, launch: Launch
    ) -> Ending:
        """Loading, start probe, service."""
        found = await self._until_loaded(process, http, launch)
        if isinstance(found, Ending):
            return found
        probed = await self._probed(process, http, tasks)
        if isinstance(probed, Ending):
            return probed
        self._begin_service(found, probed, launch)
        return await self._serve(process, http, tasks)

    async def _probed(
        self, process: Process, http: httpx.AsyncClient, tasks: asyncio.TaskGroup
    ) -> health.Probe | Ending:
        """The start probe; a worker that need not speculate may be one that cannot even chat."""
        if not health.worth_probing(self._spec):
            return health.Probe(speculates=True)
        tasks.create_task(self._report_probe(http, process.pid))
        return await self._until_probed(process)

    async def _until_loaded(
        self, process: Process, http: httpx.AsyncClient, launch: Launch
    ) -> health.Health | Ending:
        deadline = self._host.clock.monotonic() + self._spec.load_timeout
        while self._host.clock.monotonic() < deadline:
            message = await self._message(_POLL_S)
            ending = self._interrupted(message, process)
            if ending is not None:
                return ending
            seen = await health.look(http, self._engine.routes)
            if seen.loaded:
                return seen
            if seen.answers and self.status.state is WorkerState.STARTING:
                self.status.advance(WorkerEvent.ANSWERS)
            self.status.update(progress=launch.progress(process.resident_bytes()))
        return Ending(failure=f"not loaded after {self._spec.load_timeout:g} s (load_timeout)")

    async def _until_probed(self, process: Process) -> health.Probe | Ending:
        while True:
            message = await self._message(None)
            if isinstance(message, Probed) and message.pid == process.pid:
                return message.probe or Ending(failure=message.failure)
            ending = self._interrupted(message, process)
            if ending is not None:
                return ending

    def _begin_service(self, seen: health.Health, probe: health.Probe, launch: Launch) -> None:
        """Ready, or ready for plain work only: published at once, never one before the other."""
        record = self.status.record
        self._ready_at = self._host.clock.monotonic()
        load_s = round(self._ready_at - self._begun_at, 3)
        events = [WorkerEvent.LOADED] if probe.speculates else _DEGRADED
        drained = [WorkerEvent.DRAIN] if record.held else []  # before it died
        self.status.advance(
            *events,
            *drained,
            reason=probe.reason,
            progress=1.0,
            load_s=load_s,
            effective_mode=self._spec.mode if probe.speculates else "ar",
            slots=seen.slots or record.slots,
            context=min(record.context, seen.context or record.context),
            build=launch.version or seen.build,
            vision=record.vision if seen.vision is None else seen.vision,
            arms=arms.offered(self._spec) if probe.obeys else (),
        )

    async def _serve(
        self, process: Process, http: httpx.AsyncClient, tasks: asyncio.TaskGroup
    ) -> Ending:
        watch = Watch.begin(self._host.clock.monotonic())
        drafts = DraftWatch(self._spec.acceptance_floor)
        while True:
            message = await self._message(_LOOK_S)
            if message is None:
                watch = watch.seen(await self._sight(process, http))
                wedged = watch.wedged(self._host.patience, self._spec.context)
                if wedged:
                    return self._given_up(wedged)
                if watch.last.answered and health.worth_probing(self._spec):
                    drafts = drafts.seen(await health.draft_counts(http, self._engine.routes))
                    self._mind(drafts, http, tasks)
                continue
            if isinstance(message, Probed) and message.pid == process.pid:
                if message.refused:
                    return self._given_up(message.failure)
                self._confirm(message.probe, drafts)
            if message is Verb.PROBE and self._probe_due(_DOUBT_S):
                tasks.create_task(self._report_probe(http, process.pid, tries=_DOUBTS))
            ending = self._interrupted(message, process)
            if ending is None:
                self._drain_or_undrain(message)
            elif ending.ordered:
                return await self._drained(process, http)
            else:
                return ending

    def _given_up(self, failure: str) -> Ending:
        """Nothing new is sent to it from now on; ending it may take a while."""
        self._drain_or_undrain(Verb.DRAIN)
        self.status.update(reason=failure)
        return Ending(failure=failure)

    def _mind(self, drafts: DraftWatch, http: httpx.AsyncClient, tasks: asyncio.TaskGroup) -> None:
        """Out of the speculative arms, or back, as its own counters tell."""
        state, fault = self.status.state, drafts.degraded
        if state is WorkerState.DEGRADED and drafts.recovers():
            mode = self._spec.mode
            self.status.advance(WorkerEvent.LOADED, reason="", effective_mode=mode)
        elif state is not WorkerState.READY or fault is None:
            return
        elif fault is Drafting.IN_VAIN:
            self._degrade(f"speculates in vain: {drafts.reason}")
        elif self._probe_due(_ASK_AGAIN_S):
            # Requests may have asked for no drafts themselves: the probe does not.
            tasks.create_task(self._report_probe(http, self.status.record.pid))

    def _probe_due(self, pause: float) -> bool:
        now = self._host.clock.monotonic()
        due = now - self._asked_at >= pause
        self._asked_at = now if due else self._asked_at
        return due

    def _confirm(self, probe: health.Probe | None, drafts: DraftWatch) -> None:
        if probe is not None and not probe.speculates and self.status.state is WorkerState.READY:
            self._degrade(f"no longer speculates: {drafts.reason}")

    def _degrade(self, how: str) -> None:
        reason = f"mode {self._spec.mode} {how}"
        self.status.advance(WorkerEvent.PROBE_FAILED, reason=reason, effective_mode="ar")

    async def _sight(self, process: Process, http: httpx.AsyncClient) -> Sighting:
        seen = await health.sight(
            http, self._engine.routes, self._host.clock.monotonic(), process.cpu_seconds()
        )
        # The look itself may have taken seconds: what counts is when it was over.
        return replace(seen, at=self._host.clock.monotonic())

    def _interrupted(self, message: Message | None, process: Process) -> Ending | None:
        """What a message means for the process: its end, or nothing."""
        if isinstance(message, Exited):
            return Ending(message.returncode) if message.pid == process.pid else None
        if message in (Internal.STOP, Verb.UNLOAD, Verb.RESTART):
            self._stopping = self._stopping or message is Internal.STOP
            self._wanted = message is Verb.RESTART
            return Ending()
        return None

    def _drain_or_undrain(self, message: Message | None) -> None:
        degraded = self.status.record.effective_mode != self._spec.mode
        if message is Verb.DRAIN and self.status.state.serves:
            self.status.advance(WorkerEvent.DRAIN)
        elif message is Verb.UNDRAIN and self.status.state is WorkerState.DRAINING:
            back = [WorkerEvent.UNDRAIN]
            self.status.advance(*back, *([WorkerEvent.PROBE_FAILED] if degraded else []))

    async def _drained(self, process: Process, http: httpx.AsyncClient) -> Ending:
        """Take nothing new and let running requests finish, for at most `drain_timeout`.

        One that makes room for another of its group has all the time it needs while it gets on: a
        swap cuts no stream.
        """
        self._drain_or_undrain(Verb.DRAIN)
        tells = self._engine.routes.slots is not None
        patient = tells and self._spec.exclusive_group is not None and not self._stopping
        deadline = self._host.clock.monotonic() + self._host.drain_timeout
        watch, quiet = Watch.begin(self._host.clock.monotonic()), 0
        while quiet < _IDLE_LOOKS and (patient or self._host.clock.monotonic() < deadline):
            if patient:
                watch = watch.seen(await self._sight(process, http))
                patient = not watch.wedged(self._host.patience, self._spec.context)
            busy = await health.busy_slots(http, self._engine.routes)
            # A server deep in a prompt does not answer in time: that is not idleness.
            quiet = quiet + 1 if busy == 0 or not tells else 0
            message = await self._message(_DRAIN_POLL_S)
            if isinstance(message, Exited) and message.pid == process.pid:
                break
            if message is Internal.STOP and not self._stopping:
                self._stopping, patient = True, False
                deadline = self._host.clock.monotonic() + self._host.drain_timeout
        return Ending()

    def _bury(self, process: Process, ending: Ending, returncode: int) -> None:
        """The process is gone: what comes next?"""
        if ending.ordered:
            self.status.advance(WorkerEvent.STOP, pid=None, reason="", progress=0.0)
            return
        served = self.status.state in (
            WorkerState.READY,
            WorkerState.DEGRADED,
            WorkerState.DRAINING,
        )
        verdict = judge(returncode, process.said(), served=served)
        if ending.failure:
            verdict = Verdict(Cause.CRASHED, ending.failure)
        self._crashed(verdict)

    def _crashed(self, verdict: Verdict) -> None:
        if verdict.cause is Cause.UNUSABLE:
            self._wanted = False
            self.status.advance(WorkerEvent.UNUSABLE, reason=verdict.reason, pid=None)
            return
        backoff = self._host.backoff
        now = self._host.clock.monotonic()
        if self._ready_at is not None and now - self._ready_at >= backoff.stable:
            self._crashes = ()
        self._crashes, self._pause = backoff.after(self._crashes, now, self._host.rng)
        self._wanted = False
        story: dict[str, Any] = {
            "restarts": self.status.record.restarts + 1,
            "crash": verdict.reason,
            "crashed_at": self._host.clock.wall(),
        }
        if self._pause is None:
            count = f"{len(self._crashes)} crashes within {backoff.window:g} s"
            reason = f"{count}, the last one: {verdict.reason}"
            event = WorkerEvent.CRASH_LOOP
        else:
            reason, event = verdict.reason, WorkerEvent.EXITED
        self.status.advance(event, reason=reason, pid=None, progress=0.0, **story)

    async def _report_exit(self, process: Process) -> None:
        returncode = await process.wait()
        self._inbox.put_nowait(Exited(process.pid, returncode))

    async def _report_probe(self, http: httpx.AsyncClient, pid: int | None, tries: int = 1) -> None:
        """Ask it to generate; with `tries` one bad answer is not yet a failure."""
        patience = self._host.probe_timeout
        for left in reversed(range(tries)):
            try:
                probe = await health.start_probe(http, self._engine, self._spec, patience)
            except health.ProbeFailed as error:
                if not left:
                    refused = isinstance(error, health.ProbeRefused)
                    self._inbox.put_nowait(Probed(pid, None, str(error), refused))
            else:
                self._inbox.put_nowait(Probed(pid, probe))
                return
            await asyncio.sleep(_POLL_S)

    async def _message(self, patience: float | None) -> Message | None:
        """The next message, or None after `patience` seconds."""
        try:
            async with asyncio.timeout(patience):
                return await self._inbox.get()
        except TimeoutError:
            return None


_DEGRADED = [WorkerEvent.LOADED, WorkerEvent.PROBE_FAILED]


def _newborn(launch: Launch, spec: WorkerSpec) -> dict[str, object]:
    """Fields of the record that a start sets anew."""
    return {
        "url": launch.url,
        "argv": launch.argv,
        "log_path": str(launch.log_path),
        "reason": "",
        "progress": 0.0,
        "effective_mode": spec.mode,
    }
