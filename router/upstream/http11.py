"""The hot path's client: HTTP/1.1 on httptools over persistent connections to each worker.

`HTTP11Upstream` has a pool per worker; `connection.py` is one socket with its parser and
`exchange.py` the answer its caller reads. No task and, as a rule, no timer is made per request.
Where a response's framing leaves a doubt the answer is refused and the socket broken. The
counterpart on httpx is `direct.py`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from router.core.errors import UpstreamFailed, UpstreamTimeout
from router.upstream.connection import Connection
from router.upstream.exchange import HTTP11Limits
from router.upstream.origin import Origin, request_head

if TYPE_CHECKING:
    from router.upstream.base import UpstreamRequest
    from router.upstream.exchange import HTTP11Response


GRACE_S = 0.05  # of a connect, after its time is over: at least one turn of the event loop
_NAME_SECONDS = 30.0  # how long a looked-up name is trusted, like most resolvers' lowest TTL


class HTTP11Upstream:
    """Workers reached over plain HTTP/1.1. Belongs to the event loop it is first used on."""

    def __init__(self, limits: HTTP11Limits | None = None) -> None:
        self._limits = limits or HTTP11Limits()
        self._pools: dict[str, _Pool] = {}
        self._closed = False

    @property
    def connects(self) -> int:
        """Connections made so far."""
        return sum(pool.connects for pool in self._pools.values())

    async def open(self, request: UpstreamRequest) -> HTTP11Response:
        """Send `request` and wait for the response's headers; see `Upstream.open`."""
        pool = self._pools.get(request.base_url) or self._add_pool(request.base_url)
        head = request_head(pool.origin, request)
        connection = pool.take() or await pool.connect(request.connect_timeout)
        exchange = connection.send(head, request)
        try:
            await exchange.head
        except BaseException:
            exchange.break_off()
            raise
        return exchange

    def _add_pool(self, base_url: str) -> _Pool:
        if len(self._pools) > 256:  # ports of workers that are long gone
            self._pools = {url: pool for url, pool in self._pools.items() if pool.connections}
        pool = self._pools[base_url] = _Pool(Origin.parse(base_url), self._limits)
        pool.closed = self._closed
        return pool

    async def aclose(self) -> None:
        """Close idle connections now and the others when their exchange ends."""
        self._closed = True
        for pool in self._pools.values():
            pool.close()
        await asyncio.sleep(0)  # the event loop closes the sockets of aborted transports


class _Pool:
    """The connections to one worker: those at rest on a stack, the freshest on top."""

    __slots__ = (
        "_address",
        "_known_until",
        "closed",
        "connections",
        "connects",
        "idle",
        "limits",
        "on_trial",
        "origin",
        "outlives_streams",
    )

    def __init__(self, origin: Origin, limits: HTTP11Limits) -> None:
        self.origin = origin
        self.limits = limits
        self.idle: list[Connection] = []
        self.on_trial: set[Connection] = set()  # after a stream: the worker may still close them
        self.connections = 0  # open, idle or not
        self.connects = 0  # ever made
        self.closed = False
        self.outlives_streams = False
        self._address: str | None = None  # where the worker's name led last
        self._known_until = 0.0

    def take(self) -> Connection | None:
        """An idle connection the worker has not closed, if there is one."""
        while self.idle:
            connection = self.idle.pop()
            if connection.is_fresh():
                return connection
            connection.abort()
        return None

    def joined(self) -> None:
        self.connections += 1
        self.connects += 1

    def try_out(self, connection: Connection) -> None:
        if self.closed:
            connection.abort()
        else:
            self.on_trial.add(connection)

    def put(self, connection: Connection) -> None:
        self.on_trial.discard(connection)
        if self.closed or len(self.idle) >= self.limits.idle_connections:
            connection.abort()
        else:
            self.idle.append(connection)

    def forget(self, connection: Connection) -> None:
        self.connections -= 1
        self.on_trial.discard(connection)
        if connection in self.idle:
            self.idle.remove(connection)
            self.outlives_streams = False  # it closes after all, or another process comes

    def close(self) -> None:
        self.closed = True
        for connection in (*self.idle, *self.on_trial):
            connection.abort()
        self.idle.clear()
        self.on_trial.clear()

    async def connect(self, seconds: float) -> Connection:
        """A new connection; see `Upstream.open` for what it raises."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as limit:
                # Our own loop may be what was late: it sees what has come before it gives up.
                timer = loop.call_later(seconds, lambda: limit.reschedule(loop.time() + GRACE_S))
                try:
                    return await self._dial()
                finally:
                    timer.cancel()
        except TimeoutError as error:
            raise UpstreamTimeout(
                "the worker did not accept a connection in time", extra={"sent": False}
            ) from error
        except (OSError, UnicodeError) as error:
            raise UpstreamFailed(
                "the worker does not accept connections", extra={"sent": False}
            ) from error

    async def _dial(self) -> Connection:
        """Connect to the address last reached, or look the name up.

        llama-server ends the connection with every stream: without this each one would wait for
        the name service.
        """
        loop = asyncio.get_running_loop()
        known, self._address = self._address, None
        if known is not None and loop.time() < self._known_until:
            try:
                return await self._connect_to(known)
            except OSError:  # it may have moved
                pass
        self._known_until = loop.time() + _NAME_SECONDS
        return await self._connect_to(self.origin.host)

    async def _connect_to(self, host: str) -> Connection:
        loop = asyncio.get_running_loop()
        transport, connection = await loop.create_connection(
            lambda: Connection(loop, self), host, self.origin.port
        )
        self._address = transport.get_extra_info("peername")[0]
        return connection
