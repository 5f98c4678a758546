"""Stands in for an agent: publishes three workers of the comparison's stub, and keeps them alive.

python tests/perf/workers_published.py REDIS_URL CLUSTER_SECRET PORT
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from workers.clock import SystemClock
from workers.record import WorkerRecord
from workers.registry import RegistryUnavailable, open_registry
from workers.state import WorkerState

MODES = {"code": "dflash2-margin", "prose": "mtp-n3", "plain": "ar"}


async def main(url: str, secret: str, port: str) -> None:
    """Until killed."""
    registry = open_registry(url, secret, SystemClock())
    records = [
        WorkerRecord(
            name=name,
            model="tiny",
            mode=mode,
            effective_mode=mode,
            url=f"http://127.0.0.1:{port}",
            state=WorkerState.READY,
            slots=64,
            context=262_144,
            spec_hash=f"hash-{name}",
            heartbeat_at=time.time(),
            started_at=time.time(),
            pid=1,
        )
        for name, mode in MODES.items()
    ]
    tell = registry.publish
    while True:
        try:
            for record in records:
                await tell(replace(record, heartbeat_at=time.time()))
        except RegistryUnavailable:
            await asyncio.sleep(0.1)
            continue
        tell = registry.heartbeat  # nothing changes: an agent wakes nobody then
        await asyncio.sleep(2.0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
