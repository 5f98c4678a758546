"""Start the embedded llama.cpp server on the trio, one process a mode."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stopwatch import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

MODES = ("ar", "mtp", "dflash2")
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Engine:
    """A running server."""

    mode: str
    url: str
    pid: int

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST a JSON body, return the JSON answer."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.loads(answer.read())


def cpu_seconds(engine: Engine) -> float:
    """Processor time of the server so far (Linux): what a busy machine does not distort."""
    tasks = Path(f"/proc/{engine.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def serve(mode: str, target: str, draft: str, port: int, slots: int, context: int) -> None:
    """Run one server in this process until a signal comes."""
    import xllamacpp as engine

    p = engine.CommonParams()
    p.model.path, p.hostnames, p.port = target, ["127.0.0.1"], port
    p.n_parallel, p.n_ctx = slots, context
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    kinds = engine.common_speculative_type
    if mode == "mtp":
        p.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_MTP]
        p.load_mtp = True
        p.speculative.draft.n_max = 3
    if mode == "dflash2":
        p.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH]
        p.speculative.draft.mparams.path = draft
        p.speculative.draft.n_max, p.speculative.draft.n_min = 7, 1
        p.speculative.draft.p_min = 0.74
    server = engine.Server(p)
    signal.sigwait((signal.SIGTERM, signal.SIGINT))
    del server
    os._exit(0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def engines(
    target: Path, draft: Path, modes: tuple[str, ...] = MODES, slots: int = 1, context: int = 4096
) -> Iterator[list[Engine]]:
    """Servers of these modes, ready; stopped on the way out."""
    running, found = [], []
    try:
        for mode in modes:
            port = free_port()
            args = [mode, str(target), str(draft), str(port), str(slots), str(context)]
            command = [sys.executable, __file__, *args]
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            running.append(process)
            found.append(Engine(mode, f"http://127.0.0.1:{port}", process.pid))
        for engine in found:
            await_ready(engine)
        yield found
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(timeout=20)


def await_ready(engine: Engine) -> None:
    """Poll /health."""
    end = seconds() + START_SECONDS
    while seconds() < end:
        try:
            with urllib.request.urlopen(engine.url + "/health", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"{engine.mode} did not start")


if __name__ == "__main__":
    serve(*sys.argv[1:4], *(int(a) for a in sys.argv[4:7]))
