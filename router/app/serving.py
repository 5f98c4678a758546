"""The gateway as a server, from the first moment to the graceful end.

It listens before the application has been imported: /health answers at once, and everything else
waits the fraction of a second until there is something to ask.
"""

from __future__ import annotations

import asyncio
import gc
import math
import signal
import socket
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import uvicorn

from router.app.processes import run_processes
from workers.logs import LineWriter, configure_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from router.api.wire import Serve
    from router.app.application import GatewayApp
    from router.settings import Settings

    OnReady = Callable[[str], None]

_GARBAGE = 10_000  # objects made beyond those freed before cycles are looked for
_ALIVE = b'{"status":"ok"}'


class Opening:
    """The ASGI application that is there first, and hands over to the gateway's."""

    def __init__(self, settings: Settings, log_writer: LineWriter) -> None:
        self._settings = settings
        self._log_writer = log_writer
        self.listening = asyncio.Event()  # set by the server: nothing heavy begins before
        self._opened = asyncio.Event()
        self.app: GatewayApp | None = None
        self.failure: Exception | None = None
        self.give_up: Callable[[], None] = lambda: None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one exchange, or the application's own life."""
        app = self.app
        if app is not None:
            await app(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["path"] == "/health" and scope["method"] in ("GET", "HEAD"):
            await _alive(send)
        else:
            await self._opened.wait()
            await self._then(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await self.listening.wait()
        try:
            create_app = await asyncio.to_thread(_import_application)
            self.app = app = create_app(self._settings, log_writer=self._log_writer)
            app.on_warm = _spare_the_collector
        except (ValueError, RuntimeError, OSError, ImportError) as error:
            self.failure = error  # told by `run_gateway`, once the server has let go
            self._opened.set()
            self.give_up()
            await receive()
        else:
            await app.live(self._open, receive)
        await send({"type": "lifespan.shutdown.complete"})

    async def _open(self) -> None:
        self._opened.set()

    async def _then(self, scope: Any, receive: Any, send: Any) -> None:
        """What waited goes on; if nothing came of it the server is on its way out."""
        if self.app is not None:
            await self.app(scope, receive, send)


def _spare_the_collector() -> None:
    """What is there after the start stays for good: no search for cycles need look at it again.

    And fewer searches: a request's objects are freed as it ends, cycles are the exception.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE, 20, 20)


async def _alive(send: Any) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_ALIVE))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": _ALIVE})


def _import_application() -> Callable[..., GatewayApp]:
    from router.app.application import create_app

    return create_app


class _Server(uvicorn.Server):
    """uvicorn, telling when it serves, and ending viewers' streams before it waits for them."""

    def __init__(self, config: uvicorn.Config, opening: Opening, on_ready: OnReady) -> None:
        super().__init__(config)
        self._opening = opening
        self._on_ready = on_ready
        opening.give_up = self._give_up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            host, port = self.config.host, self.config.port
            self._on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        self._opening.listening.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came."""
        if self._opening.app is not None:
            self._opening.app.parts.services.closing.set()
        super().handle_exit(sig, frame)

    def _give_up(self) -> None:
        self.should_exit = True


def http_protocol(hot: Callable[[], Mapping[bytes, Serve]]) -> type[asyncio.Protocol]:
    """uvicorn's protocol with the `hot` request lines taken out, as its Config wants it."""
    from router.api.unusual import UnusualProtocol

    def build(**given: Any) -> asyncio.Protocol:
        other = partial(UnusualProtocol, **given)
        if not hot():
            return other()  # before the application is there: nothing heavy is imported yet

        from router.api.wire import WireProtocol

        loop = given.get("_loop") or asyncio.get_running_loop()
        return WireProtocol(hot, given["server_state"], other, loop)

    return cast("type[asyncio.Protocol]", build)  # uvicorn calls it, and no more


def run_gateway(settings: Settings, on_ready: OnReady = lambda url: None) -> None:
    """Serve until SIGINT or SIGTERM, then finish what runs, within `shutdown_grace` seconds.

    `on_ready` is given the URL once the socket listens. With `settings.processes` above one, that
    many gateways share the address (SO_REUSEPORT) and meet in Redis like those of several hosts.

    Raises:
        ValueError: the settings name something that does not exist.
        SystemExit: a process of several could not serve.
    """
    if settings.processes > 1 and hasattr(socket, "SO_REUSEPORT"):
        with tempfile.TemporaryDirectory(prefix="specroute-") as folder:
            family = replace(settings, family_dir=Path(folder))
            run_processes(settings.processes, partial(_serve_one_of_many, family, on_ready))
    else:
        _serve(settings, on_ready)


def _leave(sig: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def _serve_one_of_many(settings: Settings, on_ready: OnReady, number: int) -> None:
    one = replace(settings, processes=1, process=number)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((settings.host, settings.port))
        _serve(one, on_ready if number == 0 else lambda url: None, [listener])


def _serve(
    settings: Settings, on_ready: OnReady, sockets: list[socket.socket] | None = None
) -> None:
    # uvicorn raises the signal again when it is done: what follows must still be done.
    signal.signal(signal.SIGTERM, _leave)
    writer = configure_logs(settings.log_format, settings.log_level)
    opening = Opening(settings, writer)
    config = uvicorn.Config(
        opening,
        host=settings.host,
        port=settings.port,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        http=http_protocol(lambda: opening.app.lines if opening.app is not None else {}),
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
        _Server(config, opening, on_ready).run(sockets=sockets)
    finally:
        writer.close()
    if opening.failure is not None:
        raise opening.failure
