"""A cluster's stand-in on one machine: pods from the rendered chart, their service, and rolls."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s.render import render, values_of
from tests.support.kubelet import Node, Pod
from workers.tiny.trio import SHIPPED_DRAFT, SHIPPED_TARGET

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# How long kube-proxy takes to hear of a change, in seconds.
PROPAGATION_S = 1.0
READY_WITHIN_S = 120.0
SECRETS = {
    "cluster-secret": "cluster-secret-of-the-tests",
    "admin-token": "admin-token-of-the-tests",
    "api-key": "api-key-of-the-tests",
    "redis-password": "redispasswordofthetests",
}
_addresses = itertools.count(2)


def _next_address() -> str:
    """Loopback addresses, each used once."""
    number = next(_addresses)
    return f"127.77.{number // 250}.{number % 250 + 1}"


class Service:
    """Connections to whichever pod is ready, chosen when they are opened; they stay where they are.

    What it knows is PROPAGATION_S old, as in a cluster.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._pods: list[Pod] = []
        self._endpoints: list[Pod] = []
        self._turn = itertools.count()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.refused = 0

    @property
    def url(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def add(self, pod: Pod) -> None:
        self._pods.append(pod)
        pod.on_change = self._changed

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, _next_address(), 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _changed(self) -> None:
        asyncio.get_running_loop().call_later(PROPAGATION_S, self._look)

    def _look(self) -> None:
        self._endpoints = [p for p in self._pods if p.ready and not p.terminating]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        async with _closing(writer):
            if not self._endpoints:
                self.refused += 1
                return
            pod = self._endpoints[next(self._turn) % len(self._endpoints)]
            try:
                up_reader, up_writer = await asyncio.open_connection(pod.ip, self._port)
            except OSError:
                self.refused += 1
                return
            async with _closing(up_writer), asyncio.TaskGroup() as tasks:
                tasks.create_task(_pump(reader, up_writer))
                tasks.create_task(_pump(up_reader, writer))


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()


@dataclass
class Cluster:
    """Everything of one release. Pods by name; a roll replaces them as the controllers would."""

    objects: list[dict[str, Any]]
    node: Node
    service: Service
    pods: dict[str, Pod] = field(default_factory=dict)
    past: list[Pod] = field(default_factory=list)
    redis_ip: str = ""
    installed_in: float = 0.0  # seconds
    _generation: int = 0

    def workload(self, kind: str, name: str) -> dict[str, Any]:
        (found,) = [o for o in self.objects if o["kind"] == kind and o["metadata"]["name"] == name]
        return found

    def gateways(self) -> list[Pod]:
        return [p for n, p in self.pods.items() if n.startswith("specroute-gateway-")]

    def workers(self) -> list[Pod]:
        pods = self.pods.values()
        return [p for p in pods if "specroute/pool" in p.template["metadata"]["labels"]]

    async def create(self, name: str, ip: str, template: dict[str, Any]) -> Pod:
        pod = Pod(name, ip, template, self.node)
        self.pods[name] = pod
        if name.startswith("specroute-gateway-"):
            self.service.add(pod)
        await pod.start()
        return pod

    async def add_worker(self, pool: str, index: int) -> Pod:
        """The pod of this number in a StatefulSet."""
        return await self.create(f"{pool}-{index}", _next_address(), self._template(pool))

    async def install(self) -> None:
        """Redis, agents and gateways at once, as `helm install --wait`."""
        begun = time.monotonic()
        pods = []
        if self.redis_ip:
            template = self._template("specroute-redis")
            pods.append(await self.create("specroute-redis-0", self.redis_ip, template))
        for workload in self.objects:
            name = workload["metadata"]["name"]
            if workload["kind"] == "StatefulSet" and name != "specroute-redis":
                replicas = range(workload["spec"].get("replicas", 0))  # none: somebody scales it
                pods += [await self.add_worker(name, index) for index in replicas]
        replicas = range(self.workload("Deployment", "specroute-gateway")["spec"]["replicas"])
        pods += [await self._gateway() for _ in replicas]
        for pod in pods:
            await pod.until_ready(READY_WITHIN_S)
        await asyncio.sleep(PROPAGATION_S + 0.1)
        self.installed_in = time.monotonic() - begun

    async def roll_gateways(self) -> None:
        """maxSurge 1, maxUnavailable 0: each new pod serves before an old one is asked to leave."""
        leaving = []
        async with asyncio.TaskGroup() as tasks:
            for old in self.gateways():
                await (await self._gateway()).until_ready(READY_WITHIN_S)
                leaving.append(tasks.create_task(self.remove(old)))

    async def roll_workers(self) -> None:
        """One pod of one pool at a time, last first; its successor is ready before the next."""
        for old in reversed(self.workers()):
            pool, _, index = old.name.rpartition("-")
            await self.remove(old)
            await (await self.add_worker(pool, int(index))).until_ready(READY_WITHIN_S)

    async def replace_redis(self, *, crash: bool = False) -> None:
        """The pod is deleted, or its node is lost, and made again; its data is gone with it."""
        old = self.pods["specroute-redis-0"]
        await (self.lose(old) if crash else self.remove(old))
        new = await self.create(old.name, old.ip, old.template)
        await new.until_ready(READY_WITHIN_S)

    async def replace_lost(self, pod: Pod) -> Pod:
        """What the StatefulSet controller does for a pod whose node is gone."""
        pool, _, index = pod.name.rpartition("-")
        new = await self.add_worker(pool, int(index))
        await new.until_ready(READY_WITHIN_S)
        return new

    async def remove(self, pod: Pod) -> None:
        await pod.delete()
        self.forget(pod)

    async def lose(self, pod: Pod) -> None:
        await pod.lose()
        self.forget(pod)

    def forget(self, pod: Pod) -> None:
        if self.pods.get(pod.name) is pod:
            del self.pods[pod.name]
        self.past.append(pod)

    def show_logs(self) -> None:
        """For whoever reads why a test failed: what pods said, requests left out."""
        for pod in (*self.past, *self.pods.values()):
            lines = [x for x in pod.log_text.splitlines() if '"event":"request"' not in x]
            happened = [(round(at - pod.events[0][0], 1), what) for at, what in pod.events]
            sys.stdout.write("\n".join([f"--- {pod.name} {happened}", *lines[-60:], ""]))

    async def uninstall(self) -> None:
        for pod in list(self.pods.values()):
            if not pod.gone:
                await pod.lose()

    def _template(self, name: str, kind: str = "StatefulSet") -> dict[str, Any]:
        template: dict[str, Any] = self.workload(kind, name)["spec"]["template"]
        return template

    async def _gateway(self) -> Pod:
        self._generation += 1
        name = f"specroute-gateway-{self._generation}"
        template = self._template("specroute-gateway", "Deployment")
        return await self.create(name, _next_address(), template)


@asynccontextmanager
async def cluster(values: dict[str, Any]) -> AsyncIterator[Cluster]:
    """The set cpu-demo with `values` over it, installed and ready; nothing is left afterwards."""
    # Short paths, for the socket of Redis.
    folder = Path(tempfile.mkdtemp(prefix="sr-k8s-"))
    objects = render(_with_addresses(values))
    maps = {o["metadata"]["name"]: dict(o["data"]) for o in objects if o["kind"] == "ConfigMap"}
    redis_ip = _next_address() if "specroute-redis" in maps else ""
    if redis_ip:
        maps["specroute-redis"]["redis.conf"] += f"bind {redis_ip}\n"
    services = {"specroute-redis:6379": f"{redis_ip}:6379"}
    node = Node(folder / "pods", SECRETS, maps, services, _models(folder / "models"))
    service = Service(8080)
    running = Cluster(objects, node, service, redis_ip=redis_ip)
    async with AsyncExitStack() as endings:
        endings.callback(shutil.rmtree, folder, ignore_errors=True)
        await service.start()
        endings.push_async_callback(service.stop)
        endings.push_async_callback(running.uninstall)
        try:
            await running.install()
            yield running
        except BaseException:
            running.show_logs()
            raise


def _with_addresses(values: dict[str, Any]) -> dict[str, Any]:
    """A gateway listens on its pod's address alone: there is one machine for all pods."""
    wanted = values_of("cpu-demo") | values
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    wanted["gateway"] = wanted["gateway"] | {"host": "${POD_IP}", "env": [address]}
    return wanted


def _models(folder: Path) -> Path:
    (folder / "tiny").mkdir(parents=True)
    shutil.copyfile(SHIPPED_TARGET, folder / "tiny/target.gguf")
    shutil.copyfile(SHIPPED_DRAFT, folder / "tiny/draft.gguf")
    return folder
