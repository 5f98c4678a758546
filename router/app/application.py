"""The gateway as an ASGI application: hot paths, cold paths, and the background tasks."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from router.api.edge import ENDPOINTS
from router.api.passthrough import Passthrough
from router.api.raw import raw_endpoints
from router.api.wire import request_lines
from router.app.parts import build

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from router.app.parts import Parts
    from router.settings import Settings
    from workers.clock import Clock
    from workers.logs import LineWriter
    from workers.registry import Registry

log = structlog.get_logger(__name__)

EXPOSED: Final = (
    *("x-request-id", "retry-after", "x-should-retry", "x-specroute-class", "x-specroute-worker"),
    *("x-specroute-mode", "x-specroute-reason", "x-specroute-overhead-ms", "x-specroute-fallback"),
)
"""Headers that a page's script may read, where `server.cors_origins` lets it ask at all."""
ASK_AGAIN_S: Final = 2.0  # before a task that did not end is cancelled again
RESTART_S: Final = 1.0  # before a failed background task is begun again


class GatewayApp:
    """The ASGI application: hot paths by one dictionary lookup, the rest by FastAPI.

    FastAPI is imported in the background after the start, so that nothing hot waits for it.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        edge = parts.services.edge
        self._hot = {endpoint.value: edge.endpoint(endpoint) for endpoint in ENDPOINTS}
        origins = parts.settings.cors_origins
        # Pages that may ask need headers on every answer, which is the middleware's to add.
        hot = {} if origins else {e.value: partial(edge.serve, e) for e in ENDPOINTS}
        self.lines = request_lines(hot)
        self._hot |= Passthrough(edge, parts.exchanges).endpoints()
        self._hot |= raw_endpoints(parts.services)
        self.on_warm: Callable[[], None] = lambda: None  # called when everything is imported
        self._cold: Any = None
        self._cold_lock = asyncio.Lock()
        self._entry = _with_cors(self._serve, origins) if origins else self._serve

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one exchange, or the application's own life."""
        if scope["type"] == "lifespan":
            await receive()
            await self.live(lambda: send({"type": "lifespan.startup.complete"}), receive)
            await send({"type": "lifespan.shutdown.complete"})
            return
        await self._entry(scope, receive, send)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        hot = self._hot.get(scope["path"]) if scope["type"] == "http" else None
        await (hot or await self._cold_app())(scope, receive, send)

    async def live(
        self, begun: Callable[[], Awaitable[Any]], ended: Callable[[], Awaitable[Any]]
    ) -> None:
        """The background tasks from start to end: one task group; then everything is closed.

        `begun` is awaited once they run, and `ended` returns when it is over.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_keep_running(run)) for run in self.parts.background]
            tasks.append(group.create_task(self._warm_up()))
            await begun()
            await ended()
            await _end(tasks)
        for close in self.parts.on_close:
            await close()

    async def _cold_app(self) -> Any:
        if self._cold is None:
            async with self._cold_lock:
                if self._cold is None:
                    build_cold_app = await asyncio.to_thread(_import_cold)
                    self._cold = build_cold_app(self.parts.services)
        return self._cold

    async def _warm_up(self) -> None:
        await self._cold_app()
        self.on_warm()


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel until all have ended: redis-py can swallow a cancellation while it reads."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=ASK_AGAIN_S)


async def _keep_running(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """A background task that fails is reported and begun again: serving must not stop for it."""
    while True:
        try:
            await run()
        except Exception:
            log.exception("background_task_failed", task=getattr(run, "__qualname__", repr(run)))
        await asyncio.sleep(RESTART_S)


def _with_cors(app: Any, origins: Sequence[str]) -> Any:
    """`app`, answering browser pages of these origins; a key is a header, so no cookies."""
    from starlette.middleware.cors import CORSMiddleware

    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=("GET", "POST"),
        allow_headers=("*",),
        expose_headers=EXPOSED,
    )


def _import_cold() -> Any:
    from router.api.cold import build_cold_app

    return build_cold_app


def create_app(
    settings: Settings,
    *,
    registry: Registry | None = None,
    clock: Clock | None = None,
    log_writer: LineWriter | None = None,
) -> GatewayApp:
    """The gateway as an ASGI application."""
    return GatewayApp(build(settings, registry=registry, clock=clock, log_writer=log_writer))
