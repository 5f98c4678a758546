"""What every registry must do, run over all of them; the Redis one against a real server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest

from workers.in_redis import connect, key
from workers.keys import seal
from workers.record import WorkerRecord
from workers.registry import (
    EXPIRY_S,
    REGISTRIES,
    Command,
    MemoryRegistry,
    RedisRegistry,
    RegistryUnavailable,
    Verb,
    open_registry,
)
from workers.state import WorkerState

SECRET = "cluster secret"  # noqa: S105


class ManualClock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def wall(self):
        return 1_700_000_000.0 + self.now


def record(name="code", **changes):
    values = {
        "name": name,
        "model": "tiny",
        "mode": "mtp-n3",
        "effective_mode": "mtp-n3",
        "url": "http://127.0.0.1:9001",
        "state": WorkerState.READY,
        "slots": 2,
        "context": 4096,
        "spec_hash": "00",
        "heartbeat_at": 1.0,
        "aliases": ("a", "b"),
        "argv": ("llama-server", "-m", "x.gguf"),
    }
    return WorkerRecord(**{**values, **changes})


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture(params=["memory", "redis"])
async def registry(request, clock):
    if request.param == "memory":
        opened = MemoryRegistry(clock, poll_s=0.1)
    else:
        url = request.getfixturevalue("redis_url")
        opened = RedisRegistry(connect(url), SECRET, poll_s=0.1)
    yield opened
    await opened.aclose()


async def test_a_published_record_is_listed_as_it_was(registry):
    await registry.publish(record("b"))
    await registry.publish(record("a", state=WorkerState.LOADING, progress=0.25))
    listed = await registry.list()
    assert listed == (record("a", state=WorkerState.LOADING, progress=0.25), record("b"))


async def test_a_heartbeat_replaces_the_record(registry):
    await registry.publish(record())
    await registry.heartbeat(record(heartbeat_at=2.0))
    assert [r.heartbeat_at for r in await registry.list()] == [2.0]


async def test_removed_workers_are_gone_and_removing_twice_is_fine(registry):
    await registry.publish(record())
    await registry.remove("code")
    await registry.remove("code")
    assert await registry.list() == ()


async def test_watch_shows_the_present_then_every_change(registry):
    await registry.publish(record())
    async with aclosing(registry.watch()) as views, asyncio.timeout(5):
        assert [r.name for r in await anext(views)] == ["code"]
        await registry.publish(record("prose"))
        while [r.name for r in await anext(views)] != ["code", "prose"]:
            pass
        await registry.remove("code")
        while [r.name for r in await anext(views)] != ["prose"]:
            pass


async def test_watch_comes_back_without_changes_too(registry):
    async with aclosing(registry.watch()) as views, asyncio.timeout(5):
        assert [await anext(views) for _ in range(3)] == [(), (), ()]


async def test_a_command_reaches_every_listener_once_and_in_order(registry):
    orders = [Command(Verb.DRAIN, "code", 5.0, "n1"), Command(Verb.RESTART, "code", 6.0, "n2")]
    heard = [[], []]

    async def listen(into):
        async with aclosing(registry.commands()) as commands:
            async for command in commands:
                into.append(command)
                if len(into) == 2:
                    return

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        for inbox in heard:
            tasks.create_task(listen(inbox))
        while await registry.send(Command(Verb.LOAD, "", 0.0, "probe")) < 2:
            await asyncio.sleep(0.01)
            for inbox in heard:
                inbox.clear()
        for inbox in heard:
            inbox.clear()
        await asyncio.sleep(0.2)  # let the probes arrive before they are thrown away
        for inbox in heard:
            inbox.clear()
        for order in orders:
            assert await registry.send(order) == 2
    assert heard == [orders, orders]


async def test_nobody_listening_is_told_to_the_sender(registry):
    assert await registry.send(Command(Verb.DRAIN, "code", 1.0, "n")) == 0


async def test_memory_expires_a_silent_worker(clock):
    registry = MemoryRegistry(clock)
    await registry.publish(record("silent"))
    clock.now += EXPIRY_S - 0.1
    await registry.publish(record("fresh"))
    assert [r.name for r in await registry.list()] == ["fresh", "silent"]
    clock.now += 0.2
    assert [r.name for r in await registry.list()] == ["fresh"]


async def test_redis_expires_a_silent_worker_by_itself(redis_url):
    client = connect(redis_url)
    registry = RedisRegistry(client, SECRET)
    await registry.publish(record())
    left = await client.pttl(key("worker", "code"))
    assert EXPIRY_S * 1000 - 5000 < left <= EXPIRY_S * 1000
    await client.delete(key("worker", "code"))  # what expiry does
    assert await registry.list() == ()
    assert await client.smembers(key("workers")) == set()
    await registry.aclose()


async def test_a_member_that_is_no_text_is_skipped_and_removed(redis_url):
    client = connect(redis_url)
    registry = RedisRegistry(client, SECRET, poll_s=0.05)
    await registry.publish(record())
    await client.sadd(key("workers"), b"\xff\xfe", b"", "gone \u00e9")
    async with aclosing(registry.watch()) as views, asyncio.timeout(5):
        assert [r.name for r in await anext(views)] == ["code"]
    assert await client.smembers(key("workers")) == {b"code"}
    await registry.aclose()


async def test_records_and_commands_of_strangers_are_refused(redis_url):
    client = connect(redis_url)
    ours = RedisRegistry(client, SECRET, poll_s=0.05)
    theirs = RedisRegistry(connect(redis_url), "another secret")
    await theirs.publish(record("forged"))
    await client.sadd(key("workers"), "garbled", "misused")
    await client.set(key("worker", "garbled"), b"\x00not a record")
    await client.set(key("worker", "misused"), seal(SECRET, "command", record().dumps()))
    await ours.publish(record("true"))
    assert [r.name for r in await ours.list()] == ["true"]

    async with aclosing(ours.commands()) as commands, asyncio.timeout(5):
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(anext(commands))
            while await theirs.send(Command(Verb.DRAIN, "code", 1.0, "forged")) == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await client.publish(key("commands"), seal(SECRET, "command", b'["format disk"]'))
            await ours.send(Command(Verb.DRAIN, "code", 1.0, "true"))
        assert first.result().nonce == "true"
    await ours.aclose()
    await theirs.aclose()


async def test_an_outage_is_one_kind_of_error(tmp_path):
    registry = open_registry(f"unix://{tmp_path}/nobody.sock", SECRET, ManualClock())
    with pytest.raises(RegistryUnavailable, match="Redis"):
        await registry.list()
    with pytest.raises(RegistryUnavailable):
        await registry.heartbeat(replace(record(), state=WorkerState.STOPPED))
    with pytest.raises(RegistryUnavailable):
        await anext(registry.watch())
    await registry.aclose()


def test_registries_open_by_scheme():
    for scheme in REGISTRIES:
        assert open_registry(f"{scheme}://host/master", SECRET, ManualClock()) is not None
    with pytest.raises(ValueError, match="http"):
        open_registry("http://host", SECRET, ManualClock())
