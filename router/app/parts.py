"""Every object of the gateway, built and connected in one place; nothing is opened here."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from classifier import load
from router import __version__
from router.access import Admission, Authenticator, KeyRing
from router.api.edge import Edge
from router.api.services import Services
from router.app.access import build_access
from router.app.learning import build_learned, build_schooling, gauges_of
from router.app.served import Served
from router.app.swaps import Swaps
from router.core.tracing import Tracer, passed_on
from router.dispatch import Dispatcher
from router.fleet import Fleet, PrefixIndex
from router.fleet.doubts import Doubts
from router.fleet.leases import Leases
from router.fleet.lingering import Lingering
from router.fleet.watch import Watch
from router.in_redis import connect
from router.relay import Books, Exchanges
from router.relay.deadline import Deadlines
from router.relay.fallback import Fallback
from router.settings import is_loopback
from router.telemetry.family import Family
from router.upstream.transports import Upstreams
from workers.clock import SystemClock
from workers.keys import worker_api_key
from workers.registry import open_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from router.app.access import Lasting
    from router.app.learning import Learned
    from router.fleet import Reservation
    from router.settings import Settings
    from router.telemetry.recorder import Recorder
    from workers.clock import Clock
    from workers.logs import LineWriter
    from workers.record import WorkerRecord
    from workers.registry import Registry


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


def build(
    settings: Settings,
    *,
    registry: Registry | None = None,
    clock: Clock | None = None,
    log_writer: LineWriter | None = None,
) -> Parts:
    """Every object, connected; nothing is opened yet. `registry` overrides `redis_url`'s."""
    clock = clock or SystemClock()
    registry = registry or open_registry(
        settings.redis_url or "memory:", settings.cluster_secret, clock
    )
    fleet, watch, admission = _meeting(settings, registry, clock)
    served = Served(load())
    gauges = partial(gauges_of, fleet, admission, watch, clock)
    learned = build_learned(settings, clock, log_writer, fleet, gauges, served)
    access = build_access(settings, clock)
    upstreams = Upstreams()
    exchanges = Exchanges(
        upstreams, _keys(settings), settings.budgets, clock, tenant_safe=settings.tenant_safe
    )
    lingering = Lingering(exchanges.busy_slots)
    prefixes = PrefixIndex()
    dispatcher = Dispatcher(
        clock=clock,
        tenant_safe=settings.tenant_safe,
        admission=admission,
        fleet=fleet,
        prefixes=prefixes,
        policy=learned.policy,
        predictor=served,
        prompt_tokens=learned.knowledge.prompt_tokens,
        recall=learned.remembrance.recall,
        exchanges=exchanges,
        fallback=_fallback(settings, upstreams),
        wait_for_worker_s=settings.wait_for_worker_s,
        deadlines=Deadlines(settings.budgets.total),
        books=Books(fleet, prefixes, access.rates, lingering, learned.recorder.record),
    )
    swaps = Swaps(fleet, admission.waiting, registry, clock)
    learned.recorder.add(swaps.record)
    doubts = Doubts(fleet, registry, clock)
    leases, family = _leases(settings, fleet, admission), _family(settings, learned, clock)
    lasting: tuple[Lasting, ...] = (*leases, *access.lasting)
    schooling = build_schooling(settings, learned, served)
    services = _services(settings, access.ring, dispatcher, learned, registry, watch)
    return Parts(
        settings=settings,
        services=replace(services, metrics_text=family[0].text) if family else services,
        dispatcher=dispatcher,
        exchanges=exchanges,
        recorder=learned.recorder,
        background=(
            *(watch.run, learned.recorder.run, lingering.run, swaps.run, doubts.run),
            *learned.background,
            *(run for school in schooling for run in (school.share, school.teach)),
            *(task.run for task in lasting),
            *(page.run for page in family),
        ),
        on_close=(
            upstreams.aclose,
            *(task.aclose for task in lasting),
            registry.aclose,
            *(school.aclose for school in schooling),
            *learned.on_close,
        ),
    )


def _meeting(
    settings: Settings, registry: Registry, clock: Clock
) -> tuple[Fleet, Watch, Admission[Reservation]]:
    """Where workers and requests meet: what is there, the look at it, and the queue before it."""
    fleet = Fleet(clock, dict(settings.models))
    admission: Admission[Reservation] = Admission(
        clock, lambda reservation: reservation.release(), max_queue=settings.max_queue
    )
    fleet.subscribe(admission.pump)
    return fleet, Watch(registry, fleet, clock), admission


def _family(settings: Settings, learned: Learned, clock: Clock) -> tuple[Family, ...]:
    """The page of several serving processes: one Family, or none for a process alone."""
    if settings.family_dir is None:
        return ()
    name = f"{settings.process}-{secrets.token_hex(4)}"
    return (Family(settings.family_dir, name, learned.metrics.text, clock),)


def _services(
    settings: Settings,
    ring: KeyRing,
    dispatcher: Dispatcher,
    learned: Learned,
    registry: Registry,
    watch: Watch,
) -> Services:
    return Services(
        edge=_edge(settings, ring, dispatcher, learned.recorder),
        fleet=dispatcher.fleet,
        admission=dispatcher.admission,
        registry=registry,
        connectivity=watch,
        uses_redis=settings.redis_url is not None,
        clock=dispatcher.clock,
        metrics_text=learned.metrics.text,
        figures=learned.figures,
        watch_decisions=learned.feed.watch,
        policy=learned.policy,
        dashboard_url=settings.dashboard_url,
        version=__version__,
    )


def _fallback(settings: Settings, upstreams: Upstreams) -> Fallback:
    """Raises ValueError where a remote model is configured and litellm is not installed."""
    if (settings.fallback or settings.fallbacks) and find_spec("litellm") is None:
        raise ValueError(
            "`fallback` needs litellm: pip install litellm (the extra `remote` of specroute)"
        )
    return Fallback(
        upstreams,
        settings.budgets,
        settings.fallback,
        dict(settings.fallbacks),
        frozenset(settings.fallback_when),
    )


def _leases(
    settings: Settings, fleet: Fleet, admission: Admission[Reservation]
) -> tuple[Leases, ...]:
    """Slots are shared where gateways can meet: one Leases, or none without Redis."""
    if settings.redis_url is None:
        return ()
    name = secrets.token_hex(8)
    return (Leases(connect(settings.redis_url), fleet, name, admission.depth),)


def _edge(settings: Settings, ring: KeyRing, dispatcher: Dispatcher, recorder: Recorder) -> Edge:
    return Edge(
        authenticator=Authenticator(
            ring,
            admin_token=settings.admin_token,
            allowed_hosts=settings.allowed_hosts,
            may_be_open=is_loopback(settings.host),
        ),
        rates=dispatcher.books.rates,
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
