"""Redis, agent and gateway as children of one parent: started in order, watched, ended in reverse.

The children run the same commands an operator would run on three machines, so `up` has no code path
of its own for serving.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from router.cli.children import Child, start_child
from router.cli.embedded_redis import find_binary, redis_argv, socket_path
from router.cli.kept_secrets import kept_secret, private_folder
from workers.clock import SystemClock
from workers.in_redis import OUTAGE, connect
from workers.registry import RegistryUnavailable, open_registry
from workers.state import WorkerState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from workers.record import WorkerRecord
    from workers.registry import Registry

_POLL_S = 0.1
_DYING_POLLS = 30  # what its parent takes along is gone in one
_SETTLED = (
    WorkerState.READY,
    WorkerState.DEGRADED,
    WorkerState.FAILED,
    WorkerState.QUARANTINED,
)


class StackFailed(RuntimeError):
    """A part did not start, or died for good; the message says which and shows its last lines."""


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What to start. `redis_url` None: embedded. `workers` are the names to wait for."""

    config: Path
    state_dir: Path
    host: str
    port: int
    workers: tuple[str, ...]
    model: str = ""  # for the example that is shown
    dashboard_port: int | None = None  # None: no dashboard
    redis_url: str | None = None
    admin_token: str | None = None
    cluster_secret: str | None = None


@dataclass(slots=True)
class Stack:
    """A running stack."""

    options: StackOptions
    redis_url: str
    admin_token: str
    registry: Registry
    children: list[Child] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where the gateway serves."""
        host = self.options.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.options.port}"

    async def watch(self) -> None:
        """Run until a part ends.

        Raises:
            StackFailed: it says which part, and shows its last lines.
        """
        while True:
            _raise_if_ended(self.children)
            await asyncio.sleep(_POLL_S)

    @property
    def dashboard_url(self) -> str | None:
        """Where the dashboard serves; None without one."""
        port = self.options.dashboard_port
        return None if port is None else f"http://127.0.0.1:{port}"


@asynccontextmanager
async def running_stack(
    options: StackOptions, on_records: Callable[[tuple[WorkerRecord, ...]], None] | None = None
) -> AsyncIterator[Stack]:
    """Start everything, wait until the gateway can serve, and stop it all on the way out.

    Raises:
        StackFailed: a part ended before the gateway was ready.
        RedisMissing: no redis-server for the embedded Redis.
    """
    state_dir = private_folder(options.state_dir)
    async with AsyncExitStack() as endings:
        secret = kept_secret(state_dir, "cluster-secret", options.cluster_secret)
        token = kept_secret(state_dir, "admin-token", options.admin_token)
        redis_url = options.redis_url
        children: list[Child] = []
        if redis_url is None:
            redis, redis_url = await _start_redis(state_dir, endings)
            children.append(redis)
        registry = open_registry(redis_url, secret, SystemClock())
        endings.push_async_callback(registry.aclose)
        stack = Stack(options, redis_url, token, registry, children)
        env = _environment(options, redis_url, secret, token)
        for name, arguments in _commands(options).items():
            argv = [sys.executable, *arguments]
            log = state_dir / "logs" / f"{name}.log"
            child = await start_child(name, argv, log=log, env=env)
            endings.push_async_callback(child.stop, 30.0)
            children.append(child)
        await _wait_until_ready(stack, on_records)
        yield stack


def _commands(options: StackOptions) -> Mapping[str, list[str]]:
    """The parts of our own, in start order: what an operator would type on other machines."""
    config = ["-c", str(options.config)]
    state = ["--state-dir", str(options.state_dir.resolve())]
    parts = {
        "agent": ["-m", "workers", *config, *state],
        "gateway": ["-m", "router", "gateway", *config, *state],
    }
    if options.dashboard_port is not None:
        parts["dashboard"] = ["-m", "router", "dashboard", *config, *state]
    return parts


def _environment(
    options: StackOptions, redis_url: str, secret: str, token: str
) -> Mapping[str, str]:
    """What the children are told beside the config: the contract's overrides, no argv secrets."""
    shown = options.dashboard_port is not None
    return os.environ | {  # noqa: TID251 - handed on whole to our own children
        "SPECROUTE_DASHBOARD__ENABLED": str(shown).lower(),
        **({"SPECROUTE_DASHBOARD__PORT": str(options.dashboard_port)} if shown else {}),
        "SPECROUTE_REDIS__URL": redis_url,
        "SPECROUTE_AUTH__CLUSTER_SECRET": secret,
        "SPECROUTE_AUTH__ADMIN_TOKEN": token,
        "SPECROUTE_SERVER__HOST": options.host,
        "SPECROUTE_SERVER__PORT": str(options.port),
    }


async def _require_no_survivor(state_dir: Path) -> None:
    """Two servers must not write one append-only file.

    The Redis of a killed `up` dies with it on Linux, a moment later; elsewhere it lives on.
    """
    path = state_dir / "redis-url"
    url = path.read_text().strip() if path.is_file() else ""
    if not url.startswith("unix://"):
        return
    client = connect(url)
    try:
        for _ in range(_DYING_POLLS):
            pid = (await client.info("server"))["process_id"]
            await asyncio.sleep(_POLL_S)
    except OUTAGE:
        return
    finally:
        await client.aclose()
    raise StackFailed(
        f"the Redis of an earlier `up` still runs in {state_dir} as pid {pid}; "
        "end it or choose another folder with --state-dir"
    )


async def _start_redis(state_dir: Path, endings: AsyncExitStack) -> tuple[Child, str]:
    await _require_no_survivor(state_dir)
    socket = socket_path(state_dir)
    argv = redis_argv(find_binary(), state_dir, socket)
    log = state_dir / "logs" / "redis.log"
    child = await start_child("redis", argv, log=log, env=os.environ)  # noqa: TID251 - its PATH
    endings.push_async_callback(child.stop, 10.0)
    url = f"unix://{socket}"
    (state_dir / "redis-url").write_text(url + "\n")
    client = connect(url)
    endings.push_async_callback(client.aclose)
    while True:
        try:
            await client.ping()
        except OUTAGE:  # not listening yet, or still reading its append-only file
            _raise_if_ended([child])
            await asyncio.sleep(_POLL_S)
        else:
            return child, url


async def _wait_until_ready(
    stack: Stack, on_records: Callable[[tuple[WorkerRecord, ...]], None] | None
) -> None:
    """Until every worker has settled and the gateway says it can serve."""
    async with httpx.AsyncClient(base_url=stack.url, timeout=5.0) as client:
        while True:
            _raise_if_ended(stack.children)
            records = await _records(stack.registry)
            if on_records is not None:
                on_records(records)
            settled = {r.name for r in records if r.state in _SETTLED}
            if settled.issuperset(stack.options.workers) and await _serves(client):
                return
            _raise_if_hopeless(stack, records)
            await asyncio.sleep(_POLL_S)


def _raise_if_ended(children: list[Child]) -> None:
    for child in children:
        if child.process.returncode is not None:
            raise StackFailed(_why_it_ended(child))


def _raise_if_hopeless(stack: Stack, records: tuple[WorkerRecord, ...]) -> None:
    """When no worker can ever serve, say why for each instead of waiting for nothing."""
    by_name = {r.name: r for r in records}
    wanted = [by_name.get(name) for name in stack.options.workers]
    lost = [r for r in wanted if r is not None and r.state in _SETTLED and not r.state.serves]
    if lost and len(lost) == len(wanted):
        reasons = "\n".join(f"  {r.name}: {r.reason or r.state}" for r in lost)
        raise StackFailed(f"no worker could be started:\n{reasons}")


def _why_it_ended(child: Child) -> str:
    """One sentence and the child's last lines."""
    return (
        f"{child.name} ended with code {child.process.returncode}; the end of {child.log}:\n"
        f"{child.last_lines()}"
    )


async def _records(registry: Registry) -> tuple[WorkerRecord, ...]:
    try:
        return await registry.list()
    except RegistryUnavailable:
        return ()


async def _serves(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/ready")).status_code == 200
    except httpx.HTTPError:
        return False
