"""A dashboard from its settings: Redis behind one URL, pages on one port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from router.dashboard.access import Doorkeeper
from router.dashboard.app import Dashboard
from router.dashboard.source import Source
from router.telemetry.history_store import HistoryStore
from router.telemetry.store import open_store
from workers.clock import SystemClock
from workers.registry import open_registry

if TYPE_CHECKING:
    from router.access import KeyEntry
    from workers.clock import Clock


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """What a dashboard is told; seconds."""

    redis_url: str
    cluster_secret: str
    admin_token: str
    host: str = "127.0.0.1"
    port: int = 8081
    keys: tuple[KeyEntry, ...] = ()
    half_life_s: float = 1800.0
    log_format: str = "console"
    log_level: str = "info"


def build(settings: DashboardSettings, clock: Clock | None = None) -> Dashboard:
    """Every object, connected; nothing is opened yet."""
    clock = clock or SystemClock()
    registry = open_registry(settings.redis_url, settings.cluster_secret, clock)
    history, store = HistoryStore.at(settings.redis_url), open_store(settings.redis_url)
    return Dashboard(
        source=Source(registry, history, store, clock, half_life_s=settings.half_life_s),
        registry=registry,
        doorkeeper=Doorkeeper(settings.admin_token, settings.cluster_secret, clock, settings.keys),
        clock=clock,
        on_close=(registry.aclose, history.aclose, store.aclose),
    )


def run_dashboard(settings: DashboardSettings) -> None:
    """Serve until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        build(settings).application(),
        host=settings.host,
        port=settings.port,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    uvicorn.Server(config).run()
