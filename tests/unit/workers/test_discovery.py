"""Pods behind a headless service come and go, and no single bad lookup adds or loses one."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from click.testing import CliRunner

from tests.support.waiting import until
from workers.addresses import NameUnknown
from workers.clock import SystemClock
from workers.discovery import Discovery, Service, main
from workers.launching import Host
from workers.registry.base import Command, RegistryUnavailable, Verb
from workers.registry.in_memory import MemoryRegistry
from workers.simulator import Script, Simulator
from workers.spec import WorkerSpec
from workers.state import WorkerState

TEMPLATE = WorkerSpec(name="llama", model="qwen", mode="ar", engine="external", slots=1)
ADDRESSES = ("127.0.0.11", "127.0.0.12")


class Names:
    """DNS as the test wants it: a set of addresses, or None for an outage."""

    def __init__(self, *addresses: str) -> None:
        self.addresses: set[str] | None = set(addresses)
        self.lookups = 0

    async def __call__(self, host: str, port: int) -> frozenset[str]:
        self.lookups += 1
        if self.addresses is None:
            raise NameUnknown("no answer")
        return frozenset(self.addresses)


@asynccontextmanager
async def pods(*addresses: str, slots: int = 3):
    """A scripted server on the same port of every address; the port."""
    with socket.socket() as probe:
        probe.bind((addresses[0], 0))
        port = probe.getsockname()[1]
    servers = []
    async with asyncio.TaskGroup() as tasks:
        for address in addresses:
            config = uvicorn.Config(
                Simulator(Script(slots=slots)),
                host=address,
                port=port,
                lifespan="off",
                log_config=None,
            )
            servers.append(uvicorn.Server(config))
            tasks.create_task(servers[-1]._serve())
        await until(lambda: all(server.started for server in servers))
        yield port
        for server in servers:
            server.should_exit = True


@asynccontextmanager
async def discovering(names: Names, port: int, registry=None):
    registry = registry or MemoryRegistry(SystemClock())
    host = Host("finder", Path(), "secret", {}, SystemClock(), random.Random(1))
    finder = Discovery(
        Service("llama.models", port, TEMPLATE),
        registry,
        host,
        names,
        lookup_s=0.05,
        heartbeat_s=0.05,
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(finder.run(stop))
        try:
            yield registry
        finally:
            stop.set()
            await running


async def states(registry) -> dict[str, WorkerState]:
    return {record.name: record.state for record in await registry.list()}


async def eventually(registry, expected: dict[str, WorkerState]) -> None:
    async with asyncio.timeout(15):
        while await states(registry) != expected:  # noqa: ASYNC110 - the registry tells when asked
            await asyncio.sleep(0.02)


async def test_every_address_becomes_a_worker_with_what_its_server_tells():
    async with pods(*ADDRESSES, slots=3) as port:
        async with discovering(Names(*ADDRESSES), port) as registry:
            names = ["llama-127-0-0-11", "llama-127-0-0-12"]
            await eventually(registry, dict.fromkeys(names, WorkerState.READY))
            for record, address in zip(await registry.list(), ADDRESSES, strict=True):
                assert record.url == f"http://{address}:{port}"
                assert (record.slots, record.model, record.engine) == (3, "qwen", "external")
        assert await registry.list() == ()  # said goodbye


async def test_pods_that_come_later_and_go_are_followed():
    names = Names(ADDRESSES[0])
    async with pods(*ADDRESSES) as port, discovering(names, port) as registry:
        await eventually(registry, {"llama-127-0-0-11": WorkerState.READY})
        names.addresses = {ADDRESSES[1]}
        await eventually(registry, {"llama-127-0-0-12": WorkerState.READY})


async def test_a_lookup_that_fails_changes_nothing():
    names = Names(*ADDRESSES)
    async with pods(*ADDRESSES) as port, discovering(names, port) as registry:
        both = dict.fromkeys(("llama-127-0-0-11", "llama-127-0-0-12"), WorkerState.READY)
        await eventually(registry, both)
        names.addresses = None
        before = names.lookups
        await until(lambda: names.lookups > before + 4)
        assert await states(registry) == both


async def test_one_missing_answer_is_not_a_farewell():
    names = Names(ADDRESSES[0])
    async with pods(ADDRESSES[0]) as port, discovering(names, port) as registry:
        await eventually(registry, {"llama-127-0-0-11": WorkerState.READY})
        started = (await registry.list())[0].started_at
        names.addresses = set()
        before = names.lookups
        await until(lambda: names.lookups > before)
        names.addresses = {ADDRESSES[0]}
        await until(lambda: names.lookups > before + 4)
        assert [r.started_at for r in await registry.list()] == [started]


async def test_orders_of_an_operator_are_obeyed_once():
    async with pods(ADDRESSES[0]) as port, discovering(Names(ADDRESSES[0]), port) as registry:
        await eventually(registry, {"llama-127-0-0-11": WorkerState.READY})
        now = SystemClock().wall()
        assert await registry.send(Command(Verb.DRAIN, "llama-127-0-0-11", now, "n1")) == 1
        await eventually(registry, {"llama-127-0-0-11": WorkerState.DRAINING})
        await registry.send(Command(Verb.UNDRAIN, "llama-127-0-0-11", now, "n2"))
        await registry.send(Command(Verb.DRAIN, "llama-127-0-0-11", now, "n1"))
        await registry.send(Command(Verb.DRAIN, "llama-127-0-0-11", now - 3600, "n3"))
        await eventually(registry, {"llama-127-0-0-11": WorkerState.READY})


class Moody(MemoryRegistry):
    """Away for its first few calls."""

    away = 4

    async def heartbeat(self, record):
        await self.publish(record)

    async def publish(self, record):
        if self.away:
            self.away -= 1
            raise RegistryUnavailable("away")
        await super().publish(record)


async def test_records_follow_when_the_registry_is_back():
    async with (
        pods(ADDRESSES[0]) as port,
        discovering(Names(ADDRESSES[0]), port, Moody(SystemClock())) as registry,
    ):
        await eventually(registry, {"llama-127-0-0-11": WorkerState.READY})


def test_an_address_of_ipv6_is_a_url_and_a_name():
    spec = Service("llama.models", 8080, TEMPLATE).spec("fd00::12")
    assert (spec.name, spec.url) == ("llama-fd00--12", "http://[fd00::12]:8080")


@pytest.mark.parametrize(
    ("arguments", "environ", "word"),
    [
        (["--service", "llama"], {"SPECROUTE_REDIS__URL": "redis://127.0.0.1:1"}, "NAME:PORT"),
        (["--service", "llama:80"], {}, "redis.url"),
        (
            ["--service", "llama.models.svc:80", "--find-by", "endpointslices"],
            {"SPECROUTE_REDIS__URL": "redis://127.0.0.1:1"},
            "this is no pod",
        ),
    ],
)
def test_what_is_missing_is_said(arguments, environ, word, tmp_path, monkeypatch):
    config = tmp_path / "specroute.yaml"
    config.write_text("models: [{name: qwen}]\n")
    monkeypatch.setenv("SPECROUTE_AUTH__CLUSTER_SECRET", "secret")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(main, ["-c", str(config), "--model", "qwen", *arguments])
    assert result.exit_code == 2
    assert word in result.output


async def test_it_beats_with_nobody_to_speak_of():
    beats = []
    host = Host("finder", Path(), "secret", {}, SystemClock(), random.Random(1))
    registry = MemoryRegistry(SystemClock())
    service = Service("llama.models", 1, TEMPLATE)
    finder = Discovery(
        service, registry, host, Names(), heartbeat_s=0.01, on_beat=lambda: beats.append(1)
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(finder.run(stop))
        await until(lambda: len(beats) > 3)
        stop.set()
    assert await registry.list() == ()


def test_mistakes_of_the_config_are_told(tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("server: {port: many}")
    arguments = ["-c", str(config), "--model", "qwen", "--service", "a:1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert f"{config}:1: " in result.output
