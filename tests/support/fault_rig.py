"""An agent with ten workers and a gateway, as processes that faults can be done to."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.support.running import free_port
from tests.support.standin import executable
from workers.tiny import prepare

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SECRET, TOKEN = "fault-secret", "fault-token"
LONG_PROMPT = 30_000  # words, one token each for the stand-in


@dataclass
class Rig:
    """The running processes, and what they are made of."""

    folder: Path
    config: Path
    port: int
    fixed_port: int
    env: dict[str, str]
    slow_s: float
    agent: subprocess.Popen[bytes] | None = None
    stolen: Path = Path()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def start_agent(self) -> None:
        """Its own log goes to a full disk."""
        argv = [sys.executable, "-m", "workers", "-c", str(self.config)]
        with open("/dev/full", "w") as full:
            self.agent = subprocess.Popen(
                [*argv, "--state-dir", str(self.state), "--drain-timeout", "5"],
                env=self.env,
                stdout=full,
                stderr=full,
                start_new_session=True,
            )

    def start_gateway(self) -> subprocess.Popen[bytes]:
        """It is never broken: its end is the rig's."""
        argv = [sys.executable, "-m", "router", "gateway", "-c", str(self.config)]
        return subprocess.Popen(
            [*argv, "--state-dir", str(self.state)],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


@asynccontextmanager
async def rig(folder: Path, *, slow_s: float) -> AsyncIterator[Rig]:
    """Everything started but Redis, which is the caller's to break; ended on the way out."""
    port, fixed = free_port(), free_port()
    config = folder / "faults.yaml"
    config.write_text(yaml.safe_dump(_document(folder, fixed, port, slow_s)))
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPECROUTE_")}
    made = Rig(folder, config, port, fixed, env, slow_s)
    made.stolen = folder / "own-target.gguf"
    logs = made.state / "logs" / "workers"
    logs.mkdir(parents=True)
    (logs / "full.log").symlink_to("/dev/full")
    async with AsyncExitStack() as endings:
        made.start_agent()
        endings.push_async_callback(_end, lambda: made.agent)
        gateway = made.start_gateway()
        endings.push_async_callback(_end, lambda: gateway)
        yield made


async def _end(process: Callable[[], subprocess.Popen[bytes] | None]) -> None:
    running = process()
    if running is not None and running.poll() is None:
        running.terminate()
        try:
            await asyncio.to_thread(running.wait, 60)  # others are being measured meanwhile
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def _document(folder: Path, fixed: int, port: int, slow_s: float) -> dict[str, Any]:
    trio = prepare(folder.parent / "models")  # made once, for all that run side by side
    own = folder / "own-target.gguf"
    shutil.copyfile(trio.target, own)
    program = str(executable(folder))
    standin = {"binary": program, "context": 40_000}
    slow = f'{{"prefill_ms": {1000 * slow_s / LONG_PROMPT}, "busy_prefill": true}}'
    real = {"context": 4096, "threads": 1, "reasoning": "off"}
    workers = {
        "killed": real,
        "frozen": real,
        "prefill": real,
        "deleted": real,
        "full": real,
        "slow": standin | {"env": {"STANDIN": slow}},
        "errors": standin,
        "deaf": standin | {"env": {"STANDIN_DEAF": "1"}},
        "port": standin | {"port": fixed},
        "bystander": standin,
    }
    targets = {name: own if name == "deleted" else trio.target for name in workers}
    return {
        "server": {"port": port},
        "redis": {"url": f"unix://{folder / 'redis.sock'}"},
        "auth": {"cluster_secret": SECRET, "admin_token": TOKEN},
        "dashboard": {"enabled": False},
        "models": [{"name": n, "target": str(path)} for n, path in targets.items()],
        "workers": [{"name": n, "model": n, "mode": "ar", **w} for n, w in workers.items()],
    }


async def gone(pids: list[int]) -> bool:
    """Whether none of these processes lives."""

    def alive(pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] != "Z"

    return not any(map(alive, pids))
