"""Plain llama-server pods, found by name: every address behind a service is a worker.

For pods that somebody else runs without our agent. Their service is looked up every few seconds,
in DNS or in its EndpointSlices; an address that comes is attached and published, one that has
gone is taken out. Run it once per service:

    python -m workers.discovery -c specroute.yaml --service llama.models.svc:8080 --model qwen
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click
import structlog

from workers.addresses import EndpointSlices, NameUnknown, by_dns
from workers.attached import Attached
from workers.clock import SystemClock
from workers.config import ConfigError, load_config
from workers.launching import Host
from workers.logs import configure_logs
from workers.modes import MODES
from workers.options import config_option, state_dir_option
from workers.registry import RegistryUnavailable, open_registry
from workers.registry.beacon import Beacon
from workers.spec import WorkerSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from workers.clock import Clock
    from workers.record import WorkerRecord
    from workers.registry import Registry

    Resolve = Callable[[str, int], Awaitable[frozenset[str]]]

log = structlog.get_logger(__name__)

LOOKUP_S = 5.0
SLICES_LOOKUP_S = 2.0  # a pod that is told to go may stop soon after
HEARTBEAT_S = 1.0
ABSENCES = 2  # lookups in a row without an address: DNS may leave one out once
_STALE_S = 60.0  # an order older than this came late, or is replayed


@dataclass(frozen=True, slots=True)
class Service:
    """Where to look, and what every server there is. `template` has neither name nor url."""

    host: str
    port: int
    template: WorkerSpec

    def spec(self, address: str) -> WorkerSpec:
        """The worker at an address: named after it, so that every finder names it the same."""
        name = f"{self.template.name}-{address.replace(':', '-').replace('.', '-')}"
        place = f"[{address}]" if ":" in address else address
        return replace(self.template, name=name[:64], url=f"http://{place}:{self.port}")


@dataclass(slots=True)
class _Known:
    worker: Attached
    name: str
    absences: int = 0


@dataclass(slots=True)
class Discovery:
    """Follows one service until told to stop; the only writer of its workers' records."""

    service: Service
    registry: Registry
    host: Host
    resolve: Resolve
    lookup_s: float = LOOKUP_S
    absences: int = ABSENCES
    heartbeat_s: float = HEARTBEAT_S
    on_beat: Callable[[], None] = lambda: None
    _known: dict[str, _Known] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _seen: set[str] = field(default_factory=set)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then the workers' records are taken away, and the servers go on."""
        async with asyncio.TaskGroup() as tasks:
            helpers = [
                tasks.create_task(self._keep_following(tasks)),
                tasks.create_task(self._keep_publishing()),
                tasks.create_task(self._keep_obeying()),
            ]
            await stop.wait()
            for helper in helpers:
                helper.cancel()
            for address in tuple(self._known):
                await self._lose(address)

    async def _keep_following(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            try:
                found = await self.resolve(self.service.host, self.service.port)
            except NameUnknown as error:
                log.warning("service_unknown", service=self.service.host, reason=str(error))
            else:
                await self._compare(found, tasks)
            await asyncio.sleep(self.lookup_s)

    async def _compare(self, found: frozenset[str], tasks: asyncio.TaskGroup) -> None:
        for address in sorted(found - self._known.keys()):
            self._meet(address, tasks)
        for address, known in tuple(self._known.items()):
            known.absences = 0 if address in found else known.absences + 1
            if known.absences >= self.absences:
                await self._lose(address)

    def _meet(self, address: str, tasks: asyncio.TaskGroup) -> None:
        spec = self.service.spec(address)
        worker = Attached(spec, self.host, lambda record: self._changed.set())
        self._known[address] = _Known(worker, spec.name)
        tasks.create_task(worker.run(start=True))
        log.info("worker_found", worker=spec.name, url=spec.url)

    async def _lose(self, address: str) -> None:
        known = self._known.pop(address)
        known.worker.stop()
        log.info("worker_gone", worker=known.name)
        try:
            await self.registry.remove(known.name)
        except RegistryUnavailable as error:
            log.warning("registry_unavailable", reason=str(error))  # it will expire

    async def _keep_publishing(self) -> None:
        """Changes at once, everything once per heartbeat."""
        told: dict[str, WorkerRecord] = {}
        while True:
            self._changed.clear()
            self.on_beat()
            now = self.host.clock.wall()
            try:
                for address, known in tuple(self._known.items()):
                    if self._known.get(address) is not known:
                        continue  # it went while another one was published
                    record = known.worker.status.record
                    beat = replace(record, heartbeat_at=now)
                    if told.get(record.name) is record:
                        await self.registry.heartbeat(beat)
                    else:
                        await self.registry.publish(beat)
                        told[record.name] = record
            except RegistryUnavailable as error:
                log.warning("registry_unavailable", reason=str(error))
                told.clear()
            await self._pause()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self.heartbeat_s):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _keep_obeying(self) -> None:
        """Drain and undrain; a server that is not ours cannot be ordered to anything else."""
        while True:
            try:
                async with aclosing(self.registry.commands()) as commands:
                    async for command in commands:
                        late = abs(self.host.clock.wall() - command.issued_at) > _STALE_S
                        if not late and command.nonce not in self._seen:
                            self._seen.add(command.nonce)
                            for known in self._known.values():
                                if known.name == command.worker:
                                    known.worker.order(command.verb)
            except RegistryUnavailable:
                await asyncio.sleep(self.heartbeat_s)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@config_option("For redis.url and auth.cluster_secret.")
@click.option("--service", required=True, metavar="NAME:PORT", help="Headless, for DNS.")
@click.option(
    "--find-by",
    type=click.Choice(["dns", "endpointslices"]),
    default="dns",
    show_default=True,
    help="EndpointSlices: NAME is NAME.NAMESPACE.svc; the pod's account may list them there.",
)
@click.option("--model", required=True, help="The model that all of them serve.")
@click.option("--mode", default="ar", show_default=True, type=click.Choice(list(MODES)))
@state_dir_option("For the files that probes look at.")
@click.option("--name", help="What their names begin with; the service's, unless given.")
@click.option("--context", default=4096, show_default=True, help="Tokens per request, at most.")
@click.option("--slots", default=1, show_default=True, help="Until a server tells its own number.")
def main(
    path: Path, service: str, find_by: str, state_dir: Path, name: str | None, **template: Any
) -> None:
    """Publish every llama-server behind a service as a worker.

    \b
    Example:
      python -m workers.discovery -c specroute.yaml --service llama.models.svc:8080 --model qwen
    """
    environ = dict(os.environ)  # noqa: TID251 - handed to the config's own reader
    try:
        config = load_config(path, environ)
    except ConfigError as error:
        raise click.UsageError("\n".join(map(str, error.problems))) from error
    if not config.auth.cluster_secret or config.redis.url == "embedded":
        raise click.UsageError("redis.url and auth.cluster_secret are needed, as for an agent")
    host, _, port = service.rpartition(":")
    if not host or not port.isdigit():
        raise click.UsageError(f"--service must be NAME:PORT, not {service!r}")
    spec = WorkerSpec(name=name or host.partition(".")[0], engine="external", **template)
    ways = _ways(find_by, environ)
    here = _host(config.auth.cluster_secret, state_dir.resolve(), SystemClock())
    writer = configure_logs(config.telemetry.log_format, config.telemetry.log_level)
    try:
        asyncio.run(_run(Service(host, int(port), spec), config.redis.url, here, ways))
    finally:
        writer.close()


def _ways(find_by: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """How a Discovery looks up. The API server forgets no address, so it is believed at once."""
    if find_by == "dns":
        return {"resolve": by_dns}
    try:
        slices = EndpointSlices.of_this_pod(environ)
    except ValueError as error:
        raise click.UsageError(f"--find-by endpointslices: {error}") from error
    return {"resolve": slices, "lookup_s": SLICES_LOOKUP_S, "absences": 1}


def _host(secret: str, state_dir: Path, clock: Clock) -> Host:
    return Host(
        name=socket.gethostname(),
        state_dir=state_dir,
        cluster_secret=secret,
        environ={},
        clock=clock,
        rng=random.Random(),  # noqa: S311 - jitter
    )


async def _run(service: Service, url: str, host: Host, ways: Mapping[str, Any]) -> None:
    registry = Beacon(open_registry(url, host.cluster_secret, host.clock), host.state_dir)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        finder = Discovery(service, registry, host, on_beat=registry.beat, **ways)
        await finder.run(stop)
    finally:
        await registry.aclose()


if __name__ == "__main__":
    main()
