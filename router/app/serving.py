"""The gateway as an ASGI application and as a server, from start to graceful end."""

from __future__ import annotations

import asyncio
import math
import sys
from typing import TYPE_CHECKING, Any, Final

import structlog
import uvicorn

from router.api.edge import ENDPOINTS
from router.api.passthrough import Passthrough
from router.api.raw import raw_endpoints
from router.app.parts import build
from router.logs import LineWriter, configure_logs

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine
    from types import FrameType

    from router.app.parts import Parts
    from router.settings import Settings
    from workers.clock import Clock
    from workers.registry import Registry

    OnReady = Callable[[str], None]

log = structlog.get_logger(__name__)

RESTART_S: Final = 1.0  # before a failed background task is begun again


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
