"""The memory estimate against what the embedded engine really occupies."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.support.supervised import PATIENCE_S, Published, host
from tests.support.waiting import until
from workers.gguf_header import read_header
from workers.memory import estimate
from workers.spec import WorkerSpec
from workers.supervisor import Supervisor
from workers.tiny import prepare

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture(scope="module")
def trio(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("trio"))


def resident_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        (line,) = (line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


async def occupied(spec, tmp_path):
    """Resident size once it has served its start probe."""
    published = Published()
    supervisor = Supervisor(spec, host(tmp_path), published)
    async with asyncio.timeout(PATIENCE_S * 2), asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run(start=True))
        await until(lambda: published.records and published.last.state.serves, PATIENCE_S)
        size = await asyncio.to_thread(resident_bytes, published.last.pid)
        supervisor.stop()
    return size


@pytest.mark.parametrize(
    ("mode", "changes"),
    [
        ("ar", {"context": 4096, "slots": 2}),
        ("ar", {"context": 4096, "slots": 8}),
        (
            "ar",
            {"context": 4096, "slots": 4, "args": ("-ctk", "q8_0", "-ctv", "q8_0", "-fa", "on")},
        ),
        ("mtp-n3", {"context": 4096, "slots": 2}),
        ("dflash2", {"context": 4096, "slots": 4}),
    ],
)
async def test_the_estimate_is_within_ten_percent(trio, tmp_path, mode, changes):
    draft = trio.draft if mode == "dflash2" else None
    spec = WorkerSpec("w", "m", mode, target=trio.target, draft=draft, threads=1, **changes)
    needed = estimate(spec, read_header(trio.target), read_header(draft) if draft else None).total
    size = await occupied(spec, tmp_path)
    log.info("%s %s: estimated %d, resident %d: %.3f", mode, changes, needed, size, needed / size)
    assert needed == pytest.approx(size, rel=0.1)
