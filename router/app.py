"""The composition root: builds every object of the gateway, opens and closes it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from classifier import load
from router.access import Admission, Authenticator, KeyRing, RateLimiter
from router.api.edge import HOT, Edge
from router.dispatch import Dispatcher
from router.fleet import Fleet, PrefixIndex
from router.fleet.lingering import Lingering
from router.fleet.watch import Watch
from router.policy import build_policy
from router.relay import Books, Exchanges
from router.telemetry import Knowledge
from router.upstream.http11 import HTTP11Upstream
from workers.clock import SystemClock
from workers.keys import worker_api_key

if TYPE_CHECKING:
    from classifier import Classification
    from router.fleet import Reservation
    from router.settings import Settings
    from workers.clock import Clock
    from workers.record import WorkerRecord
    from workers.registry.base import Registry


@dataclass(frozen=True, slots=True)
class Parts:
    """The gateway's long-lived objects."""

    settings: Settings
    clock: Clock
    fleet: Fleet
    admission: Admission[Reservation]
    edge: Edge
    watch: Watch
    upstream: HTTP11Upstream
    registry: Registry


def build(settings: Settings, registry: Registry, clock: Clock | None = None) -> Parts:
    """Every object, connected; nothing is opened yet."""
    clock = clock or SystemClock()
    fleet = Fleet(clock, dict(settings.models))
    admission: Admission[Reservation] = Admission(
        clock, lambda reservation: reservation.release(), max_queue=settings.max_queue
    )
    fleet.subscribe(admission.pump)
    knowledge = Knowledge(half_life_s=settings.policy_settings.half_life_s)
    policy = build_policy(settings.policy, settings.policy_settings, knowledge)
    prefixes = PrefixIndex()
    rates = RateLimiter(clock, settings.keys)
    upstream = HTTP11Upstream()
    outcomes: list[Any] = []

    def key_of(record: WorkerRecord) -> str | None:
        return worker_api_key(settings.cluster_secret, record.name)

    async def busy_slots(record: WorkerRecord) -> int | None:
        return None

    def recall(found: Classification, fingerprint: str, conversation: str) -> Classification:
        return found

    dispatcher = Dispatcher(
        clock=clock,
        admission=admission,
        fleet=fleet,
        prefixes=prefixes,
        policy=policy,
        predictor=load(),
        prompt_tokens=knowledge.prompt_tokens,
        recall=recall,
        exchanges=Exchanges(upstream, key_of, settings.budgets, clock),
        books=Books(fleet, prefixes, rates, Lingering(busy_slots), outcomes.append),
    )
    edge = Edge(
        authenticator=Authenticator(
            KeyRing(settings.keys),
            admin_token=settings.admin_token,
            allowed_hosts=settings.allowed_hosts,
        ),
        rates=rates,
        fleet=fleet,
        dispatcher=dispatcher,
        clock=clock,
        max_body_bytes=settings.max_body_bytes,
        on_refusal=lambda code: None,
    )
    return Parts(
        settings, clock, fleet, admission, edge, Watch(registry, fleet, clock), upstream, registry
    )


class GatewayApp:
    """The ASGI application: hot paths by one dictionary lookup, the rest by FastAPI."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._hot = {endpoint.value: parts.edge.endpoint(endpoint) for endpoint in HOT}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection event."""
        if scope["type"] == "http":
            hot = self._hot.get(scope["path"])
            assert hot is not None
            await hot(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.parts.watch.run())]
            await send({"type": "lifespan.startup.complete"})
            await receive()
            for task in tasks:
                task.cancel()
        await self.parts.upstream.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def create_app(settings: Settings, registry: Registry, clock: Clock | None = None) -> GatewayApp:
    """The gateway as an ASGI application."""
    return GatewayApp(build(settings, registry, clock))
