"""The registry's view into the fleet, also across outages."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from router.fleet import Fleet
from router.fleet import watch as module
from router.fleet.watch import Watch
from tests.fakes.gateway import HandClock, record
from tests.support.waiting import until
from workers.registry import MemoryRegistry, RegistryUnavailable


class _Scripted:
    """A registry whose listings are a script; an exception in it is an outage."""

    def __init__(self, *script) -> None:
        self.script = list(script)
        self.empty = asyncio.Event()

    async def watch(self):
        while self.script:
            item = self.script.pop(0)
            if isinstance(item, Exception):
                raise item
            yield item
        self.empty.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def _watching(registry, fleet, clock):
    watch = Watch(registry, fleet, clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch.run())
        yield watch
        task.cancel()


def _names(fleet: Fleet) -> list[str]:
    return [worker.name for worker in fleet.everything()]


async def test_changes_reach_the_fleet():
    clock = HandClock()
    registry, fleet = MemoryRegistry(clock, poll_s=0.01), Fleet(clock)
    async with _watching(registry, fleet, clock) as watch, asyncio.timeout(5):
        await registry.publish(record("one"))
        await until(lambda: _names(fleet) == ["one"])
        assert watch.reachable
        await registry.remove("one")
        await until(lambda: not _names(fleet))


async def test_an_outage_keeps_the_workers_and_a_return_waits_for_the_agents(monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    clock, fleet = HandClock(), Fleet(HandClock())
    script = _Scripted((record("one"),), RegistryUnavailable("away"), ())
    async with _watching(script, fleet, clock) as watch, asyncio.timeout(5):
        await script.empty.wait()
        assert _names(fleet) == ["one"]  # Redis came back empty: the agents have not spoken yet
        assert watch.reachable


async def test_after_the_agents_had_time_an_empty_registry_is_believed(monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    clock, fleet = HandClock(), Fleet(HandClock())

    class _Late(_Scripted):
        async def watch(self):
            async for item in super().watch():
                yield item
                clock.advance(30.0)

    script = _Late((record("one"),), RegistryUnavailable("away"), (record("one"),), ())
    async with _watching(script, fleet, clock), asyncio.timeout(5):
        await script.empty.wait()
        assert _names(fleet) == []


async def test_it_says_that_nobody_answers():
    clock, fleet = HandClock(), Fleet(HandClock())
    async with _watching(_Scripted(RegistryUnavailable("away")), fleet, clock) as watch:
        await asyncio.sleep(0.05)
        assert not watch.reachable
