"""Real llama.cpp servers on the bundled tiny trio, one process per mode."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from tests.support.gateway import SECRET, worker_at
from workers.keys import worker_api_key
from workers.tiny import NO_COST, Cost, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from workers.record import WorkerRecord

START_WITHIN = 60.0  # seconds


@dataclass
class RealWorker:
    """One running server."""

    name: str
    mode: str
    url: str
    process: subprocess.Popen[bytes]
    slots: int

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {worker_api_key(SECRET, self.name)}"}

    def record(self, **changes) -> WorkerRecord:
        return worker_at(
            self.url,
            self.name,
            mode=self.mode,
            effective_mode=self.mode,
            slots=self.slots,
            pid=self.process.pid,
            **changes,
        )

    async def busy(self) -> int:
        """Slots that are processing now."""
        async with httpx.AsyncClient(timeout=20.0) as client:
            answer = await client.get(f"{self.url}/slots", headers=self.headers)
        return sum(slot["is_processing"] for slot in answer.json())


@contextmanager
def real_workers(
    folder: Path,
    *modes: str,
    slots: int = 2,
    context: int = 4096,
    extra: tuple[str, ...] = (),
    cost: Cost = NO_COST,
) -> Iterator[list[RealWorker]]:
    """Start one server per mode (ar, mtp-n3, dflash2-margin) and end them all."""
    trio = prepare(folder, cost)
    flags = {
        "ar": [],
        "mtp-n3": ["--spec-type", "draft-mtp", "--spec-draft-n-max", "3"],
        "dflash2-margin": [
            *("--spec-type", "draft-dflash", "-md", str(trio.draft), "--spec-draft-n-max", "7"),
            *("--spec-draft-n-min", "1", "--spec-draft-p-min", "0.74"),
        ],
    }
    with ExitStack() as endings:
        workers = []
        for mode in modes:
            argv = ["-m", str(trio.target), *flags[mode], "-c", str(context * slots), *extra]
            workers.append(_start(endings, folder, mode, argv, slots))
        for worker in workers:
            _wait(worker)
        yield workers


def _start(endings: ExitStack, folder: Path, mode: str, argv: list[str], slots: int) -> RealWorker:
    name = mode.partition("-")[0]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    key_file = folder / f"{name}.key"
    key_file.write_text(worker_api_key(SECRET, name) + "\n")
    common = ["--host", "127.0.0.1", "--port", str(port), "--api-key-file", str(key_file)]
    sizes = ["-np", str(slots), "-t", "1", "--slots", "--metrics"]
    log = endings.enter_context((folder / f"{name}.log").open("wb"))
    process = subprocess.Popen(
        [sys.executable, "-m", "workers.llama_embedded", *argv, *common, *sizes, "--alias", "tiny"],
        stdout=log,
        stderr=log,
    )
    endings.callback(_stop, process)
    return RealWorker(name, mode, f"http://127.0.0.1:{port}", process, slots)


def _wait(worker: RealWorker) -> None:
    deadline = time.monotonic() + START_WITHIN
    while time.monotonic() < deadline and worker.process.poll() is None:
        try:
            if httpx.get(f"{worker.url}/health").status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the {worker.mode} server did not start")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
