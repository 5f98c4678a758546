"""A gateway on a real socket inside the test's event loop, and what scripted workers say."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import httpx
import orjson
import uvicorn

from router.app import GatewayApp, create_app
from router.app.serving import http_protocol
from router.settings import Settings
from tests.fakes.gateway import record
from tests.support.waiting import until
from workers.clock import SystemClock
from workers.registry import MemoryRegistry, RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from router.core import Outcome
    from tests.support.raw_server import Peer
    from workers.record import WorkerRecord
    from workers.registry import Registry

SECRET = "cluster-secret-of-the-tests"  # noqa: S105
ADMIN = {"authorization": "Bearer admin-token-of-the-tests"}


@dataclass
class RunningGateway:
    """A serving gateway, what it recorded so far, and a client of it."""

    url: str
    app: GatewayApp
    registry: Registry
    outcomes: list[Outcome]
    client: httpx.AsyncClient
    server: uvicorn.Server

    @property
    def fleet(self):
        return self.app.parts.services.fleet

    @property
    def in_flight(self) -> int:
        return sum(worker.in_flight for worker in self.fleet.everything())

    async def until(self, condition, seconds: float = 20.0) -> None:
        """Wait until `condition()` holds; fails when it does not in time."""
        await until(condition, seconds)

    async def publish(self, *records: WorkerRecord) -> None:
        """Put workers into the registry and wait until the gateway knows them."""
        for one in records:
            await self.registry.publish(one)
        names = {one.name for one in records}
        await self.until(lambda: names <= {w.name for w in self.fleet.everything()})

    async def chat(self, text: str = "hello", *, headers=None, **fields) -> httpx.Response:
        """One chat request."""
        body = {"model": "tiny", "messages": [{"role": "user", "content": text}], **fields}
        return await self.client.post("/v1/chat/completions", json=body, headers=headers)


@asynccontextmanager
async def gateway(
    *records: WorkerRecord, registry: Registry | None = None, wire: bool = True, **settings
) -> AsyncIterator[RunningGateway]:
    """Serve on a free port of 127.0.0.1 with `records` in its registry.

    Without `wire` every request goes through uvicorn and ASGI, as under any other server.
    """
    registry = registry or MemoryRegistry(SystemClock())
    values = {"cluster_secret": SECRET, "admin_token": "admin-token-of-the-tests", **settings}
    app = create_app(Settings(**values), registry=registry)
    outcomes: list[Outcome] = []
    app.parts.recorder._sinks += (outcomes.append,)
    config = uvicorn.Config(
        app,
        port=0,
        lifespan="on",
        log_config=None,
        access_log=False,
        http=http_protocol(lambda: app.lines) if wire else "httptools",
        ws="none",
        timeout_graceful_shutdown=10,
    )
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server._serve())
        await until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=url, timeout=60.0) as client:
            running = RunningGateway(url, app, registry, outcomes, client, server)
            try:
                await running.publish(*records)
                beating = group.create_task(_beat(registry))
                yield running
                beating.cancel()
            finally:  # also after a failure, so that it does not spread to other tests
                server.should_exit = True
                await serving


async def _beat(registry: Registry) -> None:
    """What an agent does: on a slow machine a test outlives a record's ten seconds."""
    while True:
        await asyncio.sleep(2.0)
        with contextlib.suppress(RegistryUnavailable):
            for one in await registry.list():
                await registry.heartbeat(replace(one, heartbeat_at=SystemClock().wall()))


def worker_at(url: str, name: str = "plain", **changes) -> WorkerRecord:
    """The record of a worker that listens at `url`."""
    return record(name, url=url, **changes)


def event(body: dict) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(body) + b"\n\n"


def delta(
    text: str | None = None, finish: str | None = None, role: str | None = None, **more
) -> bytes:
    """One chunk of a streamed chat answer."""
    content = {} if role is None else {"role": role}
    content |= {} if text is None else {"content": text}
    choice = {"finish_reason": finish, "index": 0, "delta": content}
    return event({"choices": [choice], "object": "chat.completion.chunk", "id": "c1", **more})


TIMINGS = {
    "cache_n": 0,
    "prompt_n": 20,
    "prompt_ms": 10.0,
    "predicted_n": 3,
    "predicted_ms": 20.0,
    "draft_n": 4,
    "draft_n_accepted": 1,
}
ANSWER = (
    delta("one ", role="assistant"),
    delta("two "),
    delta("three"),
    delta(None, "stop", timings=TIMINGS),
)
DONE = b"data: [DONE]\n\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def framed(data: bytes) -> bytes:
    """One chunk of HTTP/1.1's chunked coding."""
    return b"%x\r\n%b\r\n" % (len(data), data)


async def stream_answer(peer: Peer, *events: bytes, end: bool = True) -> None:
    """Send a streamed answer; without `end` it is left open."""
    await peer.send(STREAM_HEAD, *[framed(data) for data in events])
    if end:
        await peer.send(b"0\r\n\r\n")


async def answers_well(peer: Peer) -> None:
    """A worker that answers every request with ANSWER."""
    await peer.request()
    await stream_answer(peer, *ANSWER, DONE)


def refusal(status: bytes, body: dict) -> bytes:
    """A complete JSON answer with that status."""
    data = orjson.dumps(body)
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(data)) + data
