"""A Redis that refuses writes: agents cannot renew their records, and their workers serve on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from router.fleet import Fleet
from router.fleet import watch as module
from router.fleet.watch import Watch
from tests.fakes.gateway import HandClock, record
from tests.support.redis_server import lasting_redis
from tests.support.waiting import until
from workers.in_redis import connect, key
from workers.registry import EXPIRY_S, RedisRegistry, RegistryUnavailable

pytestmark = pytest.mark.slow

SECRET = "cluster secret"  # noqa: S105


class _Scene:
    """A gateway's watch, and two workers whose agent writes ten times a second."""

    def __init__(self, url: str) -> None:
        self.client = connect(url)
        self.clock = HandClock()
        self.fleet = Fleet(self.clock)
        self.registry = RedisRegistry(connect(url), SECRET, poll_s=0.05)
        self.agent = RedisRegistry(connect(url), SECRET)
        self.watch = Watch(self.registry, self.fleet, self.clock)
        self.living = {"one", "two"}
        self.refused = 0

    async def beat(self) -> None:
        while True:
            for name in sorted(self.living):
                try:
                    await self.agent.heartbeat(record(name))
                except RegistryUnavailable:
                    self.refused += 1
            await asyncio.sleep(0.1)

    @property
    def names(self) -> list[str]:
        return [worker.name for worker in self.fleet.everything()]

    async def allow(self, memory: int) -> None:
        await self.client.config_set("maxmemory", memory)

    async def expire(self, *names: str) -> None:
        """What ten seconds do."""
        await self.client.delete(*(key("worker", name) for name in names))

    async def close(self) -> None:
        for closing in (self.registry, self.agent, self.client):
            await closing.aclose()


@pytest.fixture
async def scene(monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", 0.05)
    async with AsyncExitStack() as stack:
        made = _Scene(stack.enter_context(lasting_redis()).url)
        stack.push_async_callback(made.close)
        tasks = [asyncio.create_task(made.beat()), asyncio.create_task(made.watch.run())]
        await until(lambda: made.names == ["one", "two"])
        yield made
        while tasks:  # a client may swallow a cancellation that meets its own timeout
            for task in tasks:
                task.cancel()
            tasks = list((await asyncio.wait(tasks, timeout=0.5))[1])


async def test_a_full_redis_takes_no_worker_out_of_service(scene):
    await scene.allow(1)
    await until(lambda: scene.refused > 1)
    await scene.expire("one", "two")
    await asyncio.sleep(0.5)
    assert scene.names == ["one", "two"]
    assert not scene.watch.reachable
    scene.living.clear()  # slow agents: they have not written yet when there is room again
    await scene.allow(0)
    await until(lambda: scene.watch.reachable)
    await asyncio.sleep(0.3)
    assert scene.names == ["one", "two"]


async def test_records_that_expire_make_room_and_still_nobody_leaves(scene):
    """Their memory is free then: the first write after it succeeds, before the agents' do."""
    await scene.allow(1)
    await until(lambda: not scene.watch.reachable)
    scene.living.clear()
    await scene.expire("one", "two")
    await scene.allow(0)
    await until(lambda: scene.watch.reachable)
    await asyncio.sleep(0.3)
    assert scene.names == ["one", "two"]


async def test_who_died_meanwhile_leaves_when_the_others_had_time(scene):
    await scene.allow(1)
    await until(lambda: not scene.watch.reachable)
    await scene.expire("one", "two")
    scene.living = {"one"}
    await scene.allow(0)
    await until(lambda: scene.watch.reachable)
    scene.clock.advance(EXPIRY_S + 1.0)
    await until(lambda: scene.names == ["one"])


async def test_a_worker_whose_record_expires_in_a_redis_with_room_leaves(scene):
    scene.living = {"one"}
    await asyncio.sleep(0.3)
    await scene.expire("two")
    await until(lambda: scene.names == ["one"])
    assert scene.watch.reachable
