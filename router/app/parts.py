"""Every object of the gateway, built and connected in one place; nothing is opened here."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from classifier import load
from router import __version__
from router.access import Admission, Authenticator, KeyRing, RateLimiter
from router.access.key_store import RedisKeys
from router.access.key_watch import KeyWatch
from router.access.shares import Shares
from router.api.edge import Edge
from router.api.services import Services
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
from router.relay.fallback import Fallback
from router.settings import is_loopback
from router.telemetry.family import Family
from router.upstream.transports import Upstreams
from workers.clock import SystemClock
from workers.keys import worker_api_key
from workers.registry import open_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from router.access import KeyEntry
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
    url = settings.redis_url or "memory:"
    registry = registry or open_registry(url, settings.cluster_secret, clock)
    fleet = Fleet(clock, dict(settings.models))
    watch = Watch(registry, fleet, clock)
    admission: Admission[Reservation] = Admission(
        clock, lambda reservation: reservation.release(), max_queue=settings.max_queue
    )
    fleet.subscribe(admission.pump)
    served = Served(load())
    learned = build_learned(
        settings,
        clock,
        log_writer,
        fleet,
        lambda: gauges_of(fleet, admission, watch, clock),
        served,
    )
    schooling = build_schooling(settings, learned, served)
    upstreams = Upstreams()
    exchanges = Exchanges(
        upstreams, _keys(settings), settings.budgets, clock, tenant_safe=settings.tenant_safe
    )
    lingering = Lingering(exchanges.busy_slots)
    doubts = Doubts(fleet, registry, clock)
    leases = _leases(settings, fleet, admission)
    prefixes, rates = PrefixIndex(), RateLimiter(clock, settings.all_keys)
    ring = KeyRing(settings.all_keys)
    keys, shares = _key_watch(settings, ring, rates), _shares(settings, rates, clock)
    shared: tuple[Leases | KeyWatch | Shares, ...] = (*leases, *keys, *shares)
    swaps = Swaps(fleet, admission.waiting, registry, clock)
    learned.recorder.add(swaps.record)
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
        total_s=settings.budgets.total,
        books=Books(fleet, prefixes, rates, lingering, learned.recorder.record),
    )
    family = _family(settings, learned, clock)
    services = _services(settings, ring, dispatcher, learned, registry, watch)
    if family:
        services = replace(services, metrics_text=family[0].text)
    return Parts(
        settings=settings,
        services=services,
        dispatcher=dispatcher,
        exchanges=exchanges,
        recorder=learned.recorder,
        background=(
            *(watch.run, learned.recorder.run, lingering.run, swaps.run, doubts.run),
            *learned.background,
            *(run for school in schooling for run in (school.share, school.teach)),
            *(task.run for task in (*shared, *family)),
        ),
        on_close=(
            upstreams.aclose,
            *(task.aclose for task in shared),
            registry.aclose,
            *(school.aclose for school in schooling),
            *learned.on_close,
        ),
    )


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


def _key_watch(settings: Settings, ring: KeyRing, rates: RateLimiter) -> tuple[KeyWatch, ...]:
    """Keys may be made and revoked meanwhile where they are kept: one KeyWatch, or none."""
    folder, url = settings.state_dir, settings.redis_url
    if folder is None and url is None:
        return ()

    def take_over(entries: tuple[KeyEntry, ...]) -> None:
        ring.replace(entries)
        rates.replace(entries)

    watch = KeyWatch(
        settings.keys,
        take_over,
        file=folder / "keys.json" if folder is not None else None,
        store=RedisKeys(connect(url), settings.cluster_secret) if url is not None else None,
        known=settings.made_keys,
    )
    return (watch,)


def _shares(settings: Settings, rates: RateLimiter, clock: Clock) -> tuple[Shares, ...]:
    if settings.redis_url is None:
        return ()
    return (Shares(connect(settings.redis_url), rates, secrets.token_hex(8), clock),)


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
