"""What outcomes teach and where they are written: the recorder and its sinks, put together."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from classifier import CLASSES
from router import __version__
from router.api.control import PolicySwitch
from router.api.figures import Figures
from router.app.schooling import Schooling, Terms
from router.in_redis import connect
from router.logs import RequestLog
from router.relay.produced import Remembrance
from router.telemetry import Knowledge
from router.telemetry.chronicle import Chronicle, Sight
from router.telemetry.decision_log import DecisionLog
from router.telemetry.feed import Feed
from router.telemetry.history_store import HistoryStore
from router.telemetry.lessons import Lessons
from router.telemetry.metrics import Gauges, Metrics, SpeedupGauge, WorkerGauge
from router.telemetry.recorder import Recorder, Sampled
from router.telemetry.sharing import StatsSync
from router.telemetry.speedups import speedups
from router.telemetry.store import MemoryStatsStore, open_store
from router.telemetry.tracing import Tracing
from workers.registry import EXPIRY_S

PLAIN: Final = "ar"  # what speed-ups are over

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from router.access import Admission
    from router.app.served import Served
    from router.fleet import Fleet, Reservation
    from router.fleet.watch import Watch
    from router.settings import Settings
    from router.telemetry.recorder import Sink
    from workers.clock import Clock
    from workers.logs import LineWriter


@dataclass(frozen=True, slots=True)
class Learned:
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


def build_learned(
    settings: Settings,
    clock: Clock,
    log_writer: LineWriter | None,
    fleet: Fleet,
    gauges: Callable[[], Gauges],
    served: Served,
) -> Learned:
    """Everything that outcomes go to; `gauges` tells the figures of the instant."""
    routing = settings.policy_settings
    knowledge = Knowledge(half_life_s=routing.half_life_s, stated=routing.priors)
    policy = PolicySwitch(settings.policy, settings.policy_settings, knowledge)
    store = open_store(settings.redis_url) if settings.redis_url else MemoryStatsStore()
    gateway = secrets.token_hex(8)
    sync = StatsSync(knowledge, store, clock, gateway=gateway)
    metrics, feed = metrics_of(knowledge, gauges), Feed()
    remembrance = Remembrance(clock, knowledge.accepted)
    sinks: list[Sink] = [Sampled(policy.observe), metrics.observe, sync.record, feed.record]
    sinks.append(remembrance.observe)
    on_close: list[Callable[[], Coroutine[Any, Any, None]]] = [store.aclose]
    background: list[Callable[[], Coroutine[Any, Any, None]]] = [sync.run]
    if settings.state_dir is not None and settings.decision_log:
        which = f"-{settings.process}" if settings.process else ""
        decisions = DecisionLog(settings.state_dir / f"decisions{which}.jsonl")
        sinks.append(decisions.record)
        on_close.append(partial(_closed, decisions))
    if log_writer is not None:
        sinks.append(RequestLog(log_writer, settings.log_format).observe)
    if settings.redis_url is not None:
        history = HistoryStore.at(settings.redis_url)
        look = partial(_sight, fleet, knowledge, policy, gauges)
        chronicle = Chronicle(
            history,
            clock,
            gateway=gateway,
            look=look,
            explain=lambda features: served.explain(features),  # which may be swapped
        )
        sinks.append(chronicle.record)
        background.append(chronicle.run)
        on_close.append(history.aclose)
    if settings.otlp_endpoint is not None:
        tracing = Tracing(settings.otlp_endpoint, version=__version__)
        sinks.append(tracing.record)
        on_close.append(tracing.aclose)
    recorder = Recorder(sinks)
    return Learned(
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


def build_schooling(settings: Settings, learned: Learned, served: Served) -> tuple[Schooling, ...]:
    """What teaches the classifier where gateways can meet: one Schooling, or none without Redis."""
    if settings.redis_url is None:
        return ()
    terms = Terms(
        settings.learning,
        settings.learning_answers,
        settings.learning_interval,
        settings.redis_url,
        settings.cluster_secret,
    )
    lessons = Lessons(connect(settings.redis_url), settings.cluster_secret, secrets.token_hex(8))
    speeds = partial(_speed_tables, learned.knowledge)
    note = learned.metrics.note_study
    return (Schooling(terms, lessons, learned.remembrance, served, speeds, note),)


def _speed_tables(knowledge: Knowledge) -> list[dict[str, dict[str, float]]]:
    """By model: relative decode speed by mode and class, of modes measured in every class."""
    tables: dict[str, dict[str, dict[str, float]]] = {}
    for row in _speedups(knowledge):
        table = tables.setdefault(row.model, {PLAIN: {c.value: 1.0 for c in CLASSES}})
        table.setdefault(row.mode, {})[row.workload_class] = row.ratio
    whole = len(CLASSES)
    return [{m: row for m, row in t.items() if len(row) == whole} for t in tables.values()]


async def _closed(decisions: DecisionLog) -> None:
    await asyncio.to_thread(decisions.close)


def metrics_of(knowledge: Knowledge, gauges: Callable[[], Gauges]) -> Metrics:
    """/metrics with the speed-ups that `knowledge` has learned."""
    return Metrics(gauges, partial(_speedups, knowledge))


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
        collapses=tuple(knowledge.collapses),
        policy=policy.name,
        status={
            "version": __version__,
            "queue": dict(now.queue_depth),
            "inflight": {worker.worker: worker.inflight for worker in now.workers},
        },
    )


def gauges_of(
    fleet: Fleet, admission: Admission[Reservation], watch: Watch, clock: Clock
) -> Gauges:
    """What a scrape of /metrics finds at this instant."""
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
