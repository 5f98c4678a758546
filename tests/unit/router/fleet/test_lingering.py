"""Slots that were left while the worker was busy with them."""

from __future__ import annotations

import asyncio

import pytest

from router.fleet import Fleet, lingering
from router.fleet.lingering import Lingering
from tests.fakes.gateway import HandClock, record
from tests.support.waiting import until


class _Worker:
    """Says how many of its slots are busy."""

    def __init__(self, busy: int | None) -> None:
        self.busy = busy

    async def __call__(self, record) -> int | None:
        return self.busy


def _fleet() -> Fleet:
    fleet = Fleet(HandClock())
    fleet.update([record(slots=4)])
    return fleet


async def test_a_left_stream_is_free_once_the_worker_noticed(monkeypatch):
    monkeypatch.setattr(lingering, "NOTICE_S", 0.01)
    fleet = _fleet()
    Lingering(_Worker(1)).hold(fleet.reserve("plain"), was_stream=True)
    assert fleet.in_flight("plain") == 1
    await until(lambda: fleet.in_flight("plain") == 0)


async def test_a_left_plain_request_is_busy_until_the_worker_is_not():
    fleet, worker = _fleet(), _Worker(2)
    slots = Lingering(worker)
    fleet.reserve("plain")  # somebody else's, rightly busy
    slots.hold(fleet.reserve("plain"), was_stream=False)
    await slots.look()
    assert fleet.in_flight("plain") == 2
    worker.busy = None  # does not answer just now
    await slots.look()
    assert fleet.in_flight("plain") == 2
    worker.busy = 1
    await slots.look()
    assert fleet.in_flight("plain") == 1


@pytest.mark.interpreted
async def test_patience_ends(monkeypatch):
    monkeypatch.setattr(lingering, "GIVE_UP_S", 0.0)
    fleet = _fleet()
    slots = Lingering(_Worker(None))
    slots.hold(fleet.reserve("plain"), was_stream=False)
    await slots.look()
    assert fleet.in_flight("plain") == 0


@pytest.mark.interpreted
async def test_its_task_looks_while_there_is_something_to_look_for(monkeypatch):
    monkeypatch.setattr(lingering, "PROBE_S", 0.0)
    fleet = _fleet()
    slots = Lingering(_Worker(0))
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(slots.run())
        for _ in range(2):
            slots.hold(fleet.reserve("plain"), was_stream=False)
            await until(lambda: fleet.in_flight("plain") == 0)
        task.cancel()
