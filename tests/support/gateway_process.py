"""A gateway in a process of its own that can be asked for its tasks, sockets, slots and memory.

`python -m tests.support.gateway_process RECORD...` serves before the given workers (JSON records),
or before scripted ones with `--simulated N`. It prints its URL, then a JSON line per line of input.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from tests.support.gateway import RunningGateway, gateway
from tests.support.simulated import simulated_fleet
from workers.record import WorkerRecord
from workers.scripted import Script

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class GatewayProcess:
    """The parent's side."""

    url: str
    process: asyncio.subprocess.Process
    log: Path

    async def look(self) -> dict[str, Any]:
        """Counts at this moment: tasks, sockets, in_flight, queued, rss (bytes), ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"look\n")
        line = await self.process.stdout.readline()
        assert line, f"it ended:\n{self.log.read_text()}"
        return json.loads(line)

    async def quiet(self, seconds: float = 60.0) -> dict[str, Any]:
        """Wait until nothing is in flight or queued."""
        async with asyncio.timeout(seconds):
            while (seen := await self.look())["in_flight"] or seen["queued"]:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        return seen


@asynccontextmanager
async def gateway_process(
    folder: Path, *arguments: str, records: Sequence[WorkerRecord] = ()
) -> AsyncIterator[GatewayProcess]:
    """A running one; its log is in `folder`."""
    log = folder / "gateway.log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.gateway_process", *arguments),
            *(record.dumps().decode() for record in records),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=file,
        )
    try:
        async with asyncio.timeout(120.0):
            line = await process.stdout.readline()
        assert line.startswith(b"http"), log.read_text()
        yield GatewayProcess(line.decode().strip(), process, log)
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 60.0)
        except TimeoutError:
            process.kill()
            await process.wait()


async def main(arguments: list[str]) -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever prints goes to the log
    async with AsyncExitStack() as stack:
        if arguments[:1] == ["--simulated"]:
            scripts = {f"w{n}": _script(n) for n in range(int(arguments[1]))}
            _, records = await stack.enter_async_context(simulated_fleet(scripts))
        else:
            records = [WorkerRecord.loads(text) for text in arguments]
        running = await stack.enter_async_context(gateway(*records))
        answers.write(running.url + "\n")
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        ended = 0
        while await reader.readline():
            ended += len(running.outcomes)
            running.outcomes.clear()
            answers.write(json.dumps(_look(running, ended)) + "\n")


def _script(number: int) -> Script:
    return Script(tokens=3, mode=("ar", "mtp-n3")[number % 2], slots=4)


def _look(running: RunningGateway, ended: int) -> dict[str, Any]:
    gc.collect()
    fields = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
    return {
        "tasks": len(asyncio.all_tasks()),
        "sockets": sum(_is_socket(fd) for fd in os.listdir("/proc/self/fd")),
        "in_flight": running.in_flight,
        "queued": running.app.parts.services.admission.depth(),
        "rss": 1024 * int(fields["VmRSS"].split()[0]),
        "ended": ended,
    }


def _is_socket(fd: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    except FileNotFoundError:  # a thread has just closed it
        return False


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1:]))
