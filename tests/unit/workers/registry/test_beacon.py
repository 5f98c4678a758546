"""What a kubelet's probes see of a host's workers."""

from __future__ import annotations

import os
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from workers.clock import SystemClock
from workers.record import WorkerRecord
from workers.registry.base import Command, RegistryUnavailable, Verb
from workers.registry.beacon import Beacon
from workers.registry.in_memory import MemoryRegistry
from workers.state import WorkerState

if TYPE_CHECKING:
    from pathlib import Path

RECORD = WorkerRecord(
    name="code",
    model="m",
    mode="ar",
    effective_mode="ar",
    url="http://127.0.0.1:1",
    state=WorkerState.STARTING,
    slots=2,
    context=4096,
    spec_hash="0",
    heartbeat_at=0.0,
)


def record(state: WorkerState, name: str = "code") -> WorkerRecord:
    return replace(RECORD, name=name, state=state)


@pytest.fixture
def beacon(tmp_path: Path) -> Beacon:
    return Beacon(MemoryRegistry(SystemClock()), tmp_path)


@pytest.mark.parametrize("state", list(WorkerState))
async def test_ready_is_there_exactly_while_the_worker_serves(
    state: WorkerState, beacon: Beacon, tmp_path: Path
) -> None:
    await beacon.publish(record(WorkerState.READY))
    await beacon.publish(record(state))
    assert (tmp_path / "ready").exists() is state.serves


async def test_a_host_that_is_still_loading_one_of_its_workers_is_not_ready(
    beacon: Beacon, tmp_path: Path
) -> None:
    await beacon.publish(record(WorkerState.READY))
    await beacon.publish(record(WorkerState.LOADING, "prose"))
    assert not (tmp_path / "ready").exists()
    await beacon.publish(record(WorkerState.DRAINING, "prose"))
    assert (tmp_path / "ready").exists()
    await beacon.remove("code")
    assert not (tmp_path / "ready").exists()


async def test_what_an_earlier_container_left_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "ready").touch()
    Beacon(MemoryRegistry(SystemClock()), tmp_path)
    assert not (tmp_path / "ready").exists()


async def test_alive_is_touched_by_every_heartbeat(beacon: Beacon, tmp_path: Path) -> None:
    await beacon.heartbeat(record(WorkerState.STARTING))
    os.utime(tmp_path / "alive", (0, 0))
    await beacon.heartbeat(record(WorkerState.STARTING))
    assert (tmp_path / "alive").stat().st_mtime > 0


class Away(MemoryRegistry):
    """A registry that cannot be reached."""

    async def publish(self, record: WorkerRecord) -> None:
        raise RegistryUnavailable("away")

    heartbeat = publish


async def test_the_files_are_right_while_the_registry_is_away(tmp_path: Path) -> None:
    beacon = Beacon(Away(SystemClock()), tmp_path)
    with pytest.raises(RegistryUnavailable):
        await beacon.publish(record(WorkerState.READY))
    assert (tmp_path / "ready").exists()
    assert (tmp_path / "alive").exists()


async def test_a_closed_host_is_not_ready(beacon: Beacon, tmp_path: Path) -> None:
    await beacon.publish(record(WorkerState.READY))
    await beacon.aclose()
    assert not (tmp_path / "ready").exists()


async def test_everything_else_is_the_registrys(tmp_path: Path) -> None:
    inner = MemoryRegistry(SystemClock())
    beacon = Beacon(inner, tmp_path / "new")
    ready = record(WorkerState.READY)
    await beacon.heartbeat(ready)
    assert await inner.list() == await beacon.list() == (ready,)
    assert await beacon.send(Command(Verb.DRAIN, "code", 0.0, "n")) == 0
    async with aclosing(beacon.watch()) as listings:
        assert await anext(listings) == (ready,)
