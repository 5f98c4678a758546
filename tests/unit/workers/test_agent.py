"""One host's workers: records, orders, exclusive groups, and a registry that comes and goes."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.support.serving import served
from tests.support.supervised import PATIENCE_S, simulated
from tests.support.waiting import until
from workers.agent import Agent, AgentOptions, run_agent
from workers.clock import SystemClock
from workers.keys import worker_api_key
from workers.registry import Command, MemoryRegistry, RegistryUnavailable, Verb
from workers.scripted import Script
from workers.simulator import Simulator
from workers.spec import WorkerSpec

pytestmark = pytest.mark.slow
CLOCK = SystemClock()


class Flaky(MemoryRegistry):
    """A registry that can be away."""

    away = False

    async def publish(self, record):
        self._check()
        await super().publish(record)

    async def heartbeat(self, record):
        self._check()
        await super().heartbeat(record)

    async def remove(self, name):
        self._check()
        await super().remove(name)

    def _check(self):
        if self.away:
            raise RegistryUnavailable("away")


@asynccontextmanager
async def running(specs, registry, tmp_path):
    stop = asyncio.Event()
    options = AgentOptions(tmp_path, "secret", dict(os.environ), heartbeat=0.2, host="here")
    async with asyncio.timeout(PATIENCE_S * 3), asyncio.TaskGroup() as tasks:
        tasks.create_task(run_agent(specs, registry, options, CLOCK, stop))
        yield
        stop.set()


def _runs(pid):
    return Path(f"/proc/{pid}").exists()


async def states(registry):
    return {record.name: record.state.value for record in await registry.list()}


async def becomes(registry, expected):
    async with asyncio.timeout(PATIENCE_S):
        while await states(registry) != expected:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def order(registry, verb, worker, nonce, age=0.0):
    assert await registry.send(Command(verb, worker, CLOCK.wall() - age, nonce)) == 1


async def test_workers_are_published_and_taken_away(tmp_path):
    registry = MemoryRegistry(CLOCK)
    async with served(Simulator(Script())) as url:
        specs = [simulated("ours", "ar"), WorkerSpec("theirs", "m", "ar", url=url)]
        async with running(specs, registry, tmp_path):
            await becomes(registry, {"ours": "ready", "theirs": "ready"})
            before = {r.name: r for r in await registry.list()}
            assert {r.host for r in before.values()} == {"here"}
            await asyncio.sleep(0.5)
            later = {r.name: r for r in await registry.list()}
            assert all(later[n].heartbeat_at > before[n].heartbeat_at for n in before)
    assert await states(registry) == {}
    assert not _runs(before["ours"].pid)


async def test_orders_are_obeyed_once_and_stale_or_foreign_ones_not(tmp_path):
    registry = MemoryRegistry(CLOCK)
    async with running([simulated("a", "ar")], registry, tmp_path):
        await becomes(registry, {"a": "ready"})
        await order(registry, Verb.DRAIN, "a", "late", age=3600.0)
        await order(registry, Verb.DRAIN, "nobody", "foreign")
        await asyncio.sleep(0.5)
        assert await states(registry) == {"a": "ready"}
        await order(registry, Verb.DRAIN, "a", "1")
        await becomes(registry, {"a": "draining"})
        await order(registry, Verb.UNDRAIN, "a", "2")
        await becomes(registry, {"a": "ready"})
        await order(registry, Verb.DRAIN, "a", "1")  # replayed
        await asyncio.sleep(0.5)
        assert await states(registry) == {"a": "ready"}


async def test_one_of_an_exclusive_group_at_a_time(tmp_path):
    registry = MemoryRegistry(CLOCK)
    specs = [simulated(name, "ar", exclusive_group="gpu0") for name in ("a", "b")]
    async with running([*specs, simulated("c", "ar")], registry, tmp_path):
        await becomes(registry, {"a": "ready", "b": "stopped", "c": "ready"})
        await order(registry, Verb.LOAD, "b", "1")
        await becomes(registry, {"a": "stopped", "b": "ready", "c": "ready"})


async def test_workers_go_on_while_the_registry_is_away(tmp_path):
    registry = Flaky(CLOCK)
    registry.away = True
    async with running([simulated("a", "ar")], registry, tmp_path):
        await until(lambda: (tmp_path / "logs" / "workers" / "a.log").exists(), PATIENCE_S)
        await asyncio.sleep(1.5)
        assert await states(registry) == {}
        registry.away = False
        await becomes(registry, {"a": "ready"})
        registry.away = True


async def of(registry, name):
    return {record.name: record for record in await registry.list()}[name]


async def read_slowly(record):
    """The lines of a stream that takes a few seconds."""
    key = {"authorization": f"Bearer {worker_api_key('secret', record.name)}"}
    ask = {"messages": [], "max_tokens": 40, "stream": True}
    async with httpx.AsyncClient(base_url=record.url, headers=key, timeout=60.0) as http:
        await http.put("/script", json={"step_ms": 50.0})
        async with http.stream("POST", "/v1/chat/completions", json=ask) as answer:
            return [line async for line in answer.aiter_lines() if line]


@asynccontextmanager
async def reloadable(specs, registry, tmp_path):
    """An agent to be told of other configurations; reloads are tasks of the group."""
    stop = asyncio.Event()
    options = AgentOptions(tmp_path, "secret", dict(os.environ), heartbeat=0.2, host="here")
    agent = Agent(specs, registry, options, CLOCK)
    async with asyncio.timeout(PATIENCE_S * 3), asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.run(stop))
        await becomes(registry, {spec.name: "ready" for spec in specs})
        yield agent, tasks
        stop.set()


async def test_a_correction_does_not_wait_for_what_it_corrects(tmp_path):
    registry = MemoryRegistry(CLOCK)
    async with served(Simulator(Script())) as url:
        good = WorkerSpec("theirs", "m", "ar", url=url, slots=1)
        dead = replace(good, url="http://127.0.0.1:9")
        ours = simulated("ours", "ar")
        async with reloadable([good, ours], registry, tmp_path) as (agent, tasks):
            pid = (await of(registry, "ours")).pid
            wrong = tasks.create_task(agent.reload([dead, replace(ours, slots=2)]))
            await becomes(registry, {"theirs": "starting", "ours": "ready"})
            also = tasks.create_task(agent.reload([dead, replace(ours, slots=3)]))
            await asyncio.wait_for(wrong, PATIENCE_S)
            await asyncio.sleep(0.5)
            assert (await of(registry, "ours")).pid == pid  # nothing else serves
            last = tasks.create_task(agent.reload([good, replace(ours, slots=4)]))
            await asyncio.wait([also, last], timeout=PATIENCE_S)
            await becomes(registry, {"theirs": "ready", "ours": "ready"})
            assert (await of(registry, "ours")).slots == 4


async def test_one_that_was_added_by_mistake_is_taken_away_while_others_wait(tmp_path):
    registry = MemoryRegistry(CLOCK)
    before = [simulated("a", "ar"), simulated("b", "ar")]
    async with reloadable(before, registry, tmp_path) as (agent, tasks):
        pid = (await of(registry, "b")).pid
        slow = simulated("a", "ar", script={"load_s": 3600.0})
        wrong = tasks.create_task(
            agent.reload([slow, replace(before[1], slots=2), simulated("c", "ar")])
        )
        await becomes(registry, {"a": "loading", "b": "ready", "c": "ready"})
        await agent.reload(before)
        assert wrong.done()
        await becomes(registry, {"a": "ready", "b": "ready"})
        assert (await of(registry, "b")).pid == pid  # its turn had not come


async def test_a_reload_touches_what_changed_and_cuts_no_stream(tmp_path):
    registry, stop = MemoryRegistry(CLOCK), asyncio.Event()
    options = AgentOptions(tmp_path, "secret", dict(os.environ), heartbeat=0.2, host="here")
    before = [simulated(name, "ar") for name in ("same", "changed", "gone", "renamed")]
    agent = Agent(before, registry, options, CLOCK)
    async with asyncio.timeout(PATIENCE_S * 3), asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.run(stop))
        await becomes(registry, {spec.name: "ready" for spec in before})
        first = {record.name: record for record in await registry.list()}
        reading = tasks.create_task(read_slowly(first["changed"]))
        leaving = tasks.create_task(read_slowly(first["gone"]))
        await asyncio.sleep(0.5)
        after = [
            before[0],
            replace(before[1], slots=3),
            replace(before[3], aliases=("other",)),
            simulated("new", "ar"),
        ]
        await agent.reload(after)
        await becomes(registry, {spec.name: "ready" for spec in after})
        assert (await reading)[-1] == (await leaving)[-1] == "data: [DONE]"
        assert (await of(registry, "same")).pid == first["same"].pid
        renamed = await of(registry, "renamed")
        assert (renamed.pid, renamed.aliases) == (first["renamed"].pid, ("other",))
        changed = await of(registry, "changed")
        assert changed.pid != first["changed"].pid
        assert changed.slots == 3
        assert not _runs(first["gone"].pid)
        stop.set()
    assert not _runs(changed.pid)


async def test_a_failed_worker_runs_again_when_it_is_corrected(tmp_path):
    registry = MemoryRegistry(CLOCK)
    good = simulated("a", "ar")
    async with reloadable([good], registry, tmp_path) as (agent, _):
        await agent.reload([replace(good, target=tmp_path / "absent.gguf")])
        await becomes(registry, {"a": "failed"})
        await agent.reload([good])
        await becomes(registry, {"a": "ready"})
        await order(registry, Verb.UNLOAD, "a", "1")
        await becomes(registry, {"a": "stopped"})
        await agent.reload([replace(good, slots=3)])
        await asyncio.sleep(0.5)
        assert await states(registry) == {"a": "stopped"}


async def test_a_failed_worker_is_corrected_but_takes_nobodys_place(tmp_path):
    registry = MemoryRegistry(CLOCK)
    a, b = (simulated(name, "ar", exclusive_group="gpu0") for name in ("a", "b"))
    stop = asyncio.Event()
    options = AgentOptions(tmp_path, "secret", dict(os.environ), heartbeat=0.2, host="here")
    agent = Agent([replace(a, target=tmp_path / "absent.gguf"), b], registry, options, CLOCK)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.run(stop))
        await becomes(registry, {"a": "failed", "b": "stopped"})
        await order(registry, Verb.LOAD, "b", "1")
        await becomes(registry, {"a": "failed", "b": "ready"})
        await agent.reload([a, b])
        await becomes(registry, {"a": "stopped", "b": "ready"})
        stop.set()
