"""The composition root: builds every object of the gateway, opens and closes it."""

from __future__ import annotations

import asyncio
import math
import secrets
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog
import uvicorn

from classifier import load
from router import __version__
from router.access import Admission, Authenticator, KeyRing, RateLimiter
from router.api.control import PolicySwitch
from router.api.edge import ENDPOINTS, Edge
from router.api.figures import Figures
from router.api.passthrough import Passthrough
from router.api.raw import raw_endpoints
from router.api.services import Services
from router.core.tracing import Tracer, passed_on
from router.dispatch import Dispatcher
from router.fleet import Fleet, PrefixIndex
from router.fleet.leases import Leases
from router.fleet.lingering import Lingering
from router.fleet.watch import Watch
from router.in_redis import connect
from router.logs import LineWriter, RequestLog, configure_logs
from router.relay import Books, Exchanges
from router.relay.produced import Remembrance
from router.telemetry import Knowledge
from router.telemetry.chronicle import Chronicle, Sight
from router.telemetry.decision_log import DecisionLog
from router.telemetry.feed import Feed
from router.telemetry.history_store import HistoryStore
from router.telemetry.metrics import Gauges, Metrics, SpeedupGauge, WorkerGauge
from router.telemetry.recorder import Recorder
from router.telemetry.sharing import StatsSync
from router.telemetry.speedups import speedups
from router.telemetry.store import MemoryStatsStore, open_store
from router.telemetry.tracing import Tracing
from router.upstream.http11 import HTTP11Upstream
from workers.clock import SystemClock
from workers.keys import worker_api_key
from workers.registry import EXPIRY_S, open_registry

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine
    from types import FrameType

    from router.fleet import Reservation
    from router.settings import Settings
    from router.telemetry.recorder import Sink
    from workers.clock import Clock
    from workers.record import WorkerRecord
    from workers.registry import Registry

    OnReady = Callable[[str], None]


log = structlog.get_logger(__name__)

RESTART_S: Final = 1.0  # before a failed background task is begun again


@dataclass(frozen=True, slots=True)
class Parts:
    """The gateway's long-lived objects, for whoever opens and closes them."""

    settings: Settings
    services: Services
    dispatcher: Dispatcher
    exchanges: Exchanges
    recorder: Recorder
    background: tuple[Callable[[], Coroutine[Any, Any, None]], ...]
    on_close: tuple[Callable[[], Coroutine[Any, Any, None]], ...]


@dataclass(frozen=True, slots=True)
class _Learned:
    """What outcomes teach, and where they are written."""

    knowledge: Knowledge
    policy: PolicySwitch
    remembrance: Remembrance
    metrics: Metrics
    feed: Feed
    figures: Figures
    recorder: Recorder
    background: tuple[Callable[[], Coroutine[Any, Any, None]], ...]
    on_close: tuple[Callable[[], Coroutine[Any, Any, None]], ...]


def build(
    settings: Settings,
    *,
    registry: Registry | None = None,
    clock: Clock | None = None,
    log_writer: LineWriter | None = None,
) -> Parts:
    """Every object, connected; nothing is opened yet. `registry` overrides `redis_url`'s."""
    clock = clock or SystemClock()
    url = settings.redis_url or "memory:"
    registry = registry or open_registry(url, settings.cluster_secret, clock)
    fleet = Fleet(clock, dict(settings.models))
    watch = Watch(registry, fleet, clock)
    admission: Admission[Reservation] = Admission(
        clock, lambda reservation: reservation.release(), max_queue=settings.max_queue
    )
    fleet.subscribe(admission.pump)
    learned = _learned(
        settings, clock, log_writer, fleet, lambda: _gauges(fleet, admission, watch, clock)
    )
    upstream = HTTP11Upstream()
    exchanges = Exchanges(
        upstream, _keys(settings), settings.budgets, clock, tenant_safe=settings.tenant_safe
    )
    lingering = Lingering(exchanges.busy_slots)
    leases = _leases(settings, fleet, admission)
    prefixes, rates = PrefixIndex(), RateLimiter(clock, settings.keys)
    dispatcher = Dispatcher(
        clock=clock,
        admission=admission,
        fleet=fleet,
        prefixes=prefixes,
        policy=learned.policy,
        predictor=load(),
        prompt_tokens=learned.knowledge.prompt_tokens,
        recall=learned.remembrance.recall,
        exchanges=exchanges,
        books=Books(fleet, prefixes, rates, lingering, learned.recorder.record),
    )
    edge = _edge(settings, rates, dispatcher, learned.recorder)
    services = Services(
        edge=edge,
        fleet=fleet,
        admission=admission,
        registry=registry,
        connectivity=watch,
        uses_redis=settings.redis_url is not None,
        clock=clock,
        metrics_text=learned.metrics.text,
        figures=learned.figures,
        watch_decisions=learned.feed.watch,
        policy=learned.policy,
        dashboard_url=settings.dashboard_url,
        version=__version__,
    )
    return Parts(
        settings=settings,
        services=services,
        dispatcher=dispatcher,
        exchanges=exchanges,
        recorder=learned.recorder,
        background=(
            *(watch.run, learned.recorder.run, lingering.run),
            *learned.background,
            *(lease.run for lease in leases),
        ),
        on_close=(
            upstream.aclose,
            *(lease.aclose for lease in leases),
            registry.aclose,
            *learned.on_close,
        ),
    )


def _learned(
    settings: Settings,
    clock: Clock,
    log_writer: LineWriter | None,
    fleet: Fleet,
    gauges: Callable[[], Gauges],
) -> _Learned:
    knowledge = Knowledge(half_life_s=settings.policy_settings.half_life_s)
    policy = PolicySwitch(settings.policy, settings.policy_settings, knowledge)
    store = open_store(settings.redis_url) if settings.redis_url else MemoryStatsStore()
    gateway = secrets.token_hex(8)
    sync = StatsSync(knowledge, store, clock, gateway=gateway)
    metrics, feed, remembrance = (
        Metrics(gauges, partial(_speedups, knowledge)),
        Feed(),
        Remembrance(clock),
    )
    sinks: list[Sink] = [policy.observe, metrics.observe, sync.record, feed.record]
    sinks.append(remembrance.observe)
    on_close: list[Callable[[], Coroutine[Any, Any, None]]] = [store.aclose]
    background: list[Callable[[], Coroutine[Any, Any, None]]] = [sync.run]
    if settings.state_dir is not None and settings.decision_log:
        decisions = DecisionLog(settings.state_dir / "decisions.jsonl")
        sinks.append(decisions.record)
        on_close.append(partial(_closed, decisions))
    if log_writer is not None:
        sinks.append(RequestLog(log_writer, settings.log_format).observe)
    if settings.redis_url is not None:
        history = HistoryStore.at(settings.redis_url)
        look = partial(_sight, fleet, knowledge, policy, gauges)
        chronicle = Chronicle(history, clock, gateway=gateway, look=look)
        sinks.append(chronicle.record)
        background.append(chronicle.run)
        on_close.append(history.aclose)
    if settings.otlp_endpoint is not None:
        tracing = Tracing(settings.otlp_endpoint, version=__version__)
        sinks.append(tracing.record)
        on_close.append(tracing.aclose)
    recorder = Recorder(sinks)
    return _Learned(
        knowledge,
        policy,
        remembrance,
        metrics,
        feed,
        Figures(knowledge, store),
        recorder,
        tuple(background),
        tuple(on_close),
    )


async def _closed(decisions: DecisionLog) -> None:
    decisions.close()


def _speedups(knowledge: Knowledge) -> list[SpeedupGauge]:
    """What /metrics tells of speed-ups: only what was measured."""
    return [
        SpeedupGauge(r.model, r.workload_class, r.mode, r.speedup, r.ci_low, r.ci_high)
        for r in speedups(knowledge.speeds)
        if r.speedup is not None and r.ci_low is not None and r.ci_high is not None
    ]


def _sight(
    fleet: Fleet, knowledge: Knowledge, policy: PolicySwitch, gauges: Callable[[], Gauges]
) -> Sight:
    """What the dashboard's history notes of this instant."""
    now = gauges()
    return Sight(
        workers=[worker.record for worker in fleet.everything()],
        alarms=knowledge.alarms,
        policy=policy.name,
        status={
            "version": __version__,
            "queue": dict(now.queue_depth),
            "inflight": {worker.worker: worker.inflight for worker in now.workers},
        },
    )


def _leases(
    settings: Settings, fleet: Fleet, admission: Admission[Reservation]
) -> tuple[Leases, ...]:
    """Slots are shared where gateways can meet: one Leases, or none without Redis."""
    if settings.redis_url is None:
        return ()
    name = secrets.token_hex(8)
    return (Leases(connect(settings.redis_url), fleet, name, admission.depth),)


def _edge(
    settings: Settings, rates: RateLimiter, dispatcher: Dispatcher, recorder: Recorder
) -> Edge:
    return Edge(
        authenticator=Authenticator(
            KeyRing(settings.keys),
            admin_token=settings.admin_token,
            allowed_hosts=settings.allowed_hosts,
        ),
        rates=rates,
        fleet=dispatcher.fleet,
        dispatcher=dispatcher,
        clock=dispatcher.clock,
        max_body_bytes=settings.max_body_bytes,
        max_grammar_bytes=settings.max_grammar_bytes,
        record=recorder.record,
        trace=Tracer(secrets.randbits) if settings.otlp_endpoint else passed_on,
    )


def _keys(settings: Settings) -> Callable[[WorkerRecord], str | None]:
    """The private key of each worker; servers that somebody else runs may have their own."""
    external = dict(settings.external_keys)

    def key_of(record: WorkerRecord) -> str | None:
        if record.name in external:
            return external[record.name]
        return worker_api_key(settings.cluster_secret, record.name)

    return key_of


def _gauges(fleet: Fleet, admission: Admission[Reservation], watch: Watch, clock: Clock) -> Gauges:
    workers = [
        WorkerGauge(
            worker=w.name,
            model=w.record.model,
            mode=w.record.effective_mode,
            up=w.record.state.serves and w.available,
            slots=w.record.slots,
            inflight=w.occupancy,
            state=w.record.state.value,
            clock_skew_s=clock_skew(w.record.heartbeat_at, clock.wall()),
        )
        for w in fleet.everything()
    ]
    depth = {model: admission.depth(model) for model in fleet.models()}
    return Gauges(workers, depth, watch.reachable)


def clock_skew(heartbeat_at: float, now: float) -> float:
    """Seconds by which a living record's stamp is ahead of us, or too old to be alive."""
    age = now - heartbeat_at
    return -age if age < 0.0 else min(0.0, EXPIRY_S - age)


class GatewayApp:
    """The ASGI application: hot paths by one dictionary lookup, the rest by FastAPI.

    FastAPI is imported in the background after the start, so that /health does not wait for it.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        edge = parts.services.edge
        self._hot = {endpoint.value: edge.endpoint(endpoint) for endpoint in ENDPOINTS}
        self._hot |= Passthrough(edge, parts.exchanges).endpoints()
        self._hot |= raw_endpoints(parts.services)
        self._cold: Any = None
        self._cold_lock = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one exchange, or the application's own life."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        hot = self._hot.get(scope["path"]) if scope["type"] == "http" else None
        await (hot or await self._cold_app())(scope, receive, send)

    async def _cold_app(self) -> Any:
        if self._cold is None:
            async with self._cold_lock:
                if self._cold is None:
                    build_cold_app = await asyncio.to_thread(_import_cold)
                    self._cold = build_cold_app(self.parts.services)
        return self._cold

    async def _live(self, receive: Any, send: Any) -> None:
        """Startup, the background tasks, shutdown: one task group from end to end."""
        await receive()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_keep_running(run)) for run in self.parts.background]
            tasks.append(group.create_task(self._warm_up()))
            await send({"type": "lifespan.startup.complete"})
            await receive()
            for task in tasks:
                task.cancel()
        for close in self.parts.on_close:
            await close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _warm_up(self) -> None:
        await self._cold_app()


async def _keep_running(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """A background task that fails is reported and begun again: serving must not stop for it."""
    while True:
        try:
            await run()
        except Exception:
            log.exception("background_task_failed", task=getattr(run, "__qualname__", repr(run)))
        await asyncio.sleep(RESTART_S)


def _import_cold() -> Any:
    from router.api.cold import build_cold_app

    return build_cold_app


class _Server(uvicorn.Server):
    """uvicorn, telling when it serves, and ending viewers' streams before it waits for them."""

    def __init__(self, config: uvicorn.Config, app: GatewayApp, on_ready: OnReady) -> None:
        super().__init__(config)
        self._app = app
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            host, port = self.config.host, self.config.port
            self._on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came."""
        self._app.parts.services.closing.set()
        super().handle_exit(sig, frame)


def run_gateway(settings: Settings, on_ready: OnReady = lambda url: None) -> None:
    """Serve until SIGINT or SIGTERM, then finish what runs, within `shutdown_grace` seconds.

    `on_ready` is given the URL once the socket listens.
    """
    writer = configure_logs(settings.log_format, settings.log_level)
    app = create_app(settings, log_writer=writer)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(settings.shutdown_grace),
        timeout_keep_alive=75,
    )
    try:
        _Server(config, app, on_ready).run()
    finally:
        writer.close()


def create_app(
    settings: Settings,
    *,
    registry: Registry | None = None,
    clock: Clock | None = None,
    log_writer: LineWriter | None = None,
) -> GatewayApp:
    """The gateway as an ASGI application."""
    return GatewayApp(build(settings, registry=registry, clock=clock, log_writer=log_writer))
