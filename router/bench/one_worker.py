"""One worker for the length of a measurement, under the same supervision as in service."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.keys import worker_api_key
from workers.launching import Host
from workers.state import WorkerState
from workers.supervisor import Supervisor

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from workers.clock import Clock
    from workers.record import WorkerRecord
    from workers.spec import WorkerSpec

_HOPELESS = (WorkerState.FAILED, WorkerState.QUARANTINED, WorkerState.BACKOFF)


class WorkerFailed(RuntimeError):
    """It did not start; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where workers are measured: logs and key files below `folder`, `environ` becomes theirs."""

    folder: Path
    environ: Mapping[str, str]
    clock: Clock
    rng: random.Random


@dataclass(frozen=True, slots=True)
class Measured:
    """A worker that serves."""

    record: WorkerRecord
    headers: Mapping[str, str]
    load_s: float

    @property
    def trouble(self) -> str:
        """Why it does not draft although it should; empty when all is well."""
        return self.record.reason if self.record.state is WorkerState.DEGRADED else ""


@asynccontextmanager
async def running_worker(spec: WorkerSpec, bench: Bench) -> AsyncIterator[Measured]:
    """Start `spec`, wait until it serves (degraded or not), and end it on the way out.

    Raises:
        WorkerFailed: it crashed, or cannot be started as it is.
    """
    secret = secrets.token_hex(16)
    settled = asyncio.Event()

    def publish(record: WorkerRecord) -> None:
        if record.state.serves or record.state in _HOPELESS:
            settled.set()

    host = Host("here", bench.folder, secret, bench.environ, bench.clock, bench.rng)
    supervisor = Supervisor(spec, host, publish)
    began = bench.clock.monotonic()
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(supervisor.run(start=True))
            try:
                await settled.wait()
                record = supervisor.status.record
                if not record.state.serves:
                    raise WorkerFailed(f"{spec.name} ({spec.mode}) did not start: {record.reason}")
                headers = {"authorization": f"Bearer {worker_api_key(secret, spec.name)}"}
                yield Measured(record, headers, bench.clock.monotonic() - began)
            finally:
                supervisor.stop()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None  # what went wrong in the measurement, as it was raised
