"""Faults done to real processes: Redis, an agent, a gateway, and workers that each have one fault.

All the workers' faults of a round happen at once, each to a worker of its own model, so a round
takes as long as the slowest and every other worker is a bystander. Times are seconds from the
fault: until the gateway's page shows it, and until a request is served again.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from tests.support.redis_server import private_redis
from tests.support.running import free_port, processes_below
from tests.support.standin import executable
from workers.keys import worker_api_key
from workers.tiny import prepare

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

SECRET, TOKEN = "fault-secret", "fault-token"
PATIENCE_S = 150.0  # for anything; a machine under load is slow
POLL_S = 0.05
LONG_PROMPT = 30_000  # words, one token each for the stand-in

OPS = {"authorization": f"Bearer {TOKEN}"}


@dataclass
class Row:
    """One fault, once. `seen` and `back` in seconds; None where there is nothing to wait for."""

    fault: str
    seen: float | None = None
    back: float | None = None
    client: str = ""  # what the request under way got
    reason: str = ""  # the worker's, as published
    wrong: list[str] = field(default_factory=list)


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


@contextmanager
def rig(folder: Path, *, slow_s: float) -> Iterator[Rig]:
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
    with ExitStack() as endings:
        made.start_agent()
        endings.callback(_end, lambda: made.agent)
        argv = [sys.executable, "-m", "router", "gateway", "-c", str(config)]
        gateway = subprocess.Popen(
            [*argv, "--state-dir", str(made.state)],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        endings.callback(_end, lambda: gateway)
        yield made


def _end(process: Callable[[], subprocess.Popen[bytes] | None]) -> None:
    running = process()
    if running is not None and running.poll() is None:
        running.terminate()
        try:
            running.wait(60)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def _document(folder: Path, fixed: int, port: int, slow_s: float) -> dict[str, Any]:
    trio = prepare(folder / "models")
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


class Round:
    """One round of all faults."""

    def __init__(self, made: Rig, http: httpx.AsyncClient) -> None:
        self.rig, self.http = made, http
        self.first: dict[str, dict[str, Any]] = {}

    async def workers(self) -> dict[str, dict[str, Any]]:
        """The gateway's view; nothing while it does not answer."""
        try:
            answer = await self.http.get("/ops/workers", headers=OPS)
            rows = answer.json()
        except (httpx.HTTPError, ValueError):
            return {}
        rows = rows.get("workers", []) if isinstance(rows, dict) else rows
        return {row["name"]: row for row in rows if "name" in row}

    async def until(self, what: str, condition: Callable[[], Awaitable[Any]]) -> float:
        """Seconds until it holds."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_S:
            if await condition():
                return time.monotonic() - began
            await asyncio.sleep(POLL_S)
        raise AssertionError(f"{what}: not within {PATIENCE_S:.0f} s")

    async def serves(self, name: str) -> bool:
        """Whether a short request to that worker is answered."""
        body = {"model": name, "messages": [{"role": "user", "content": "Count"}], "max_tokens": 4}
        try:
            return (await self.http.post("/v1/chat/completions", json=body)).status_code == 200
        except httpx.HTTPError:
            return False

    async def stream(self, name: str, begun: asyncio.Event, prompt: str = "Count to 99") -> str:
        """A long streamed request: how it ended."""
        body = {"model": name, "messages": [{"role": "user", "content": prompt}], "stream": True}
        body |= {"max_tokens": 900, "ignore_eos": True}
        text = ""
        async with self.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            async for line in answer.aiter_lines():
                begun.set()
                text += line
        begun.set()
        if answer.status_code != 200:
            return f"HTTP {answer.status_code}"
        return "whole" if "[DONE]" in text else "error event" if '"error"' in text else "cut"

    async def is_back(self, name: str) -> bool:
        """A new process that serves."""
        row = (await self.workers()).get(name, {})
        fresh = row.get("pid") not in (None, self.first[name]["pid"])
        return fresh and row["state"] == "ready" and await self.serves(name)

    async def is_seen(self, name: str) -> bool:
        """Out of service, or a crash more."""
        row = (await self.workers()).get(name, {})
        if not row:
            return False
        before = self.first[name]
        return row["state"] != "ready" or row["restarts"] > before["restarts"]

    async def pair(self, row: Row, name: str) -> Row:
        """Detection and recovery from now on."""
        began = time.monotonic()
        await self.until(f"{row.fault}: seen", lambda: self.is_seen(name))
        row.seen = time.monotonic() - began
        await self.until(f"{row.fault}: back", lambda: self.is_back(name))
        row.back = time.monotonic() - began
        row.reason = (await self.workers())[name].get("crash", "")
        return row

    async def signalled(self, fault: str, name: str, sign: int, prompt: str = "Count") -> Row:
        """A signal in the middle of a request."""
        begun, row = asyncio.Event(), Row(fault)
        async with asyncio.TaskGroup() as tasks:
            client = tasks.create_task(self.stream(name, begun, prompt))
            if prompt == "Count":
                await begun.wait()
            else:
                await self.until("under way", lambda: self._busy(name))
            os.kill(self.first[name]["pid"], sign)
            await self.pair(row, name)
        row.client = client.result()
        if row.client not in ("error event", "HTTP 502", "HTTP 503", "HTTP 504"):
            row.wrong.append(f"the client got: {row.client}")
        return row

    async def _busy(self, name: str) -> bool:
        return bool((await self.workers()).get(name, {}).get("inflight"))

    async def slow_prefill(self) -> Row:
        """Long silence at work is no fault."""
        row = Row(f"slow prefill of {LONG_PROMPT} tokens")
        words = "word " * (LONG_PROMPT - 1)
        body = {"model": "slow", "messages": [{"role": "user", "content": words}]}
        answer = await self.http.post("/v1/chat/completions", json=body | {"max_tokens": 8})
        row.client = "whole" if answer.status_code == 200 else f"HTTP {answer.status_code}"
        now = (await self.workers())["slow"]
        if row.client != "whole" or now["pid"] != self.first["slow"]["pid"]:
            row.wrong.append(f"killed: {row.client} {now.get('crash', '')}")
        return row

    async def every_chat_a_500(self) -> Row:
        """Only /health is fine."""
        row = Row("500 on every chat, /health fine")
        key = {"authorization": f"Bearer {worker_api_key(SECRET, 'errors')}"}
        url = self.first["errors"]["url"]
        async with httpx.AsyncClient(headers=key) as direct, asyncio.TaskGroup() as tasks:
            (await direct.put(f"{url}/script", json={"fault": "error"})).raise_for_status()
            asking = tasks.create_task(self._keep_asking("errors"))
            await self.pair(row, "errors")
            asking.cancel()
        return row

    async def _keep_asking(self, name: str) -> None:
        while True:
            await self.serves(name)
            await asyncio.sleep(0.3)

    async def deaf(self) -> Row:
        """A restart that SIGTERM cannot bring about."""
        await self.http.post("/ops/workers/deaf/restart", headers=OPS)
        return await self.pair(Row("SIGTERM-deaf process, restarted"), "deaf")

    async def port_stolen(self) -> Row:
        """Somebody else listens there when it dies, for three seconds."""
        row = Row("port stolen")
        os.kill(self.first["port"]["pid"], signal.SIGKILL)
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            await self.until("port free", lambda: _took(thief, self.rig.fixed_port))
            thief.listen()
            began = time.monotonic()
            await self.until("port told", lambda: self._told("port", "port in use"))
            row.seen = time.monotonic() - began
        began = time.monotonic()
        await self.until("port back", lambda: self.is_back("port"))
        row.back = time.monotonic() - began
        row.reason = "port in use"
        return row

    async def _told(self, name: str, words: str) -> bool:
        row = (await self.workers()).get(name, {})
        return words in f"{row.get('reason', '')} {row.get('crash', '')}"

    async def model_deleted(self) -> Row:
        """Gone when the worker is started again; put back, it is loaded by an order."""
        row, path = Row("model file deleted"), self.rig.stolen
        kept = path.rename(path.with_suffix(".kept"))
        began = time.monotonic()
        os.kill(self.first["deleted"]["pid"], signal.SIGKILL)
        await self.until("deletion told", lambda: self._told("deleted", "cannot be read"))
        row.seen = time.monotonic() - began
        kept.rename(path)
        began = time.monotonic()
        await self.http.post("/ops/workers/deleted/load", headers=OPS)
        await self.until("loaded again", lambda: self.is_back("deleted"))
        row.back = time.monotonic() - began
        row.reason = "cannot be read"
        return row

    async def disk_full(self) -> Row:
        """No line can be logged: it serves, dies, and is started again."""
        if not await self.serves("full"):
            return Row("disk full for logs", wrong=["it does not serve"])
        os.kill(self.first["full"]["pid"], signal.SIGKILL)
        return await self.pair(Row("disk full for logs, then kill -9"), "full")

    async def all_at_once(self) -> list[Row]:
        """Every worker's fault."""
        for name in self.first:
            await self.until(f"{name} serves", lambda name=name: self.serves(name))
        self.first = await self.workers()
        long = "word " * 2500
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(fault)
                for fault in (
                    self.signalled("kill -9 mid-stream", "killed", signal.SIGKILL),
                    self.signalled("SIGSTOP mid-stream", "frozen", signal.SIGSTOP),
                    self.signalled("SIGSTOP in prefill", "prefill", signal.SIGSTOP, long),
                    self.slow_prefill(),
                    self.every_chat_a_500(),
                    self.deaf(),
                    self.port_stolen(),
                    self.model_deleted(),
                    self.disk_full(),
                )
            ]
        rows = [task.result() for task in running]
        await self._nobody_else(rows)
        return rows

    async def _nobody_else(self, rows: list[Row]) -> None:
        """The bystander lives, and nothing is left under way."""
        now = await self.workers()
        if now["bystander"]["pid"] != self.first["bystander"]["pid"]:
            rows[0].wrong.append("the bystander was restarted")
        await self.until("nothing under way", self._idle)

    async def _idle(self) -> bool:
        return all(row["inflight"] == 0 for row in (await self.workers()).values())

    async def redis_gone(self, gone_s: float, start: Callable[[], None]) -> Row:
        """Requests go on; the outage is told, and over when Redis is back."""
        row, began = Row(f"Redis gone for {gone_s:.0f} s"), time.monotonic()
        row.seen = await self.until("outage told", lambda: self._redis("down"))
        failures = 0
        while time.monotonic() - began < gone_s:
            failures += not await self.serves("bystander")
            await asyncio.sleep(0.2)
        if failures:
            row.wrong.append(f"{failures} requests failed meanwhile")
        start()
        row.back = await self.until("Redis back", lambda: self._redis("up"))
        await self.until("workers back", self._all_ready)
        row.client = "whole"
        if (await self.workers())["bystander"]["pid"] != self.first["bystander"]["pid"]:
            row.wrong.append("the bystander was restarted")
        return row

    async def _redis(self, state: str) -> bool:
        answer = await self.http.get("/ready")
        said = answer.text
        return ('"redis":"down"' in said.replace(" ", "")) == (state == "down")

    async def _all_ready(self) -> bool:
        rows = await self.workers()
        return set(rows) == set(self.first) and all(r["state"] == "ready" for r in rows.values())

    async def agent_killed(self) -> Row:
        """Its workers die with it; a new agent brings them back."""
        row, agent = Row("agent killed"), self.rig.agent
        assert agent is not None
        pids = [r["pid"] for r in (await self.workers()).values()]
        began = time.monotonic()
        agent.kill()
        agent.wait()
        await self.until("its workers are gone", lambda: _gone(pids))
        await self.until("nobody serves", self._nobody_serves)
        row.seen = time.monotonic() - began
        self.rig.start_agent()
        began = time.monotonic()
        await self.until("all workers back", self._all_ready)
        await self.until("a request served", lambda: self.serves("bystander"))
        row.back = time.monotonic() - began
        return row

    async def _nobody_serves(self) -> bool:
        rows = await self.workers()
        return not rows or all(r["state"] != "ready" for r in rows.values())


async def _took(thief: socket.socket, port: int) -> bool:
    try:
        thief.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


async def _gone(pids: list[int]) -> bool:
    def alive(pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] != "Z"

    return not any(map(alive, pids))


def table(rows: list[Row]) -> str:
    """Median and slowest times of each fault, as Markdown."""
    lines = [
        "| fault | runs | seen, s (median, slowest) | served again, s | the client got | wrong |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for fault in dict.fromkeys(row.fault for row in rows):
        mine = [row for row in rows if row.fault == fault]
        seen, back = (_span([getattr(row, name) for row in mine]) for name in ("seen", "back"))
        clients = ", ".join(sorted({row.client for row in mine if row.client}))
        wrong = sum(bool(row.wrong) for row in mine)
        lines.append(f"| {fault} | {len(mine)} | {seen} | {back} | {clients} | {wrong} |")
    return "\n".join(lines)


def _span(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.1f}, {max(known):.1f}" if known else "-"


async def run_rounds(
    folder: Path, rounds: int, *, slow_s: float, redis_s: float, report: Callable[[Row], None]
) -> list[Row]:
    """All faults, `rounds` times; the folder's processes are counted at the end."""
    rows: list[Row] = []
    with ExitStack() as redis:
        sock = folder / "redis.sock"
        redis.enter_context(private_redis(sock))
        with rig(folder, slow_s=slow_s) as made:
            limits = httpx.Limits(max_keepalive_connections=0)
            timeout = httpx.Timeout(PATIENCE_S)
            async with httpx.AsyncClient(base_url=made.url, timeout=timeout, limits=limits) as http:
                for _ in range(rounds):
                    one = Round(made, http)
                    one.first = {w["name"]: {"pid": None} for w in _configured(made)}
                    await one.until("all ready", one._all_ready)
                    found = await one.all_at_once()
                    one.first = await one.workers()
                    redis.close()
                    found.append(
                        await one.redis_gone(
                            redis_s, lambda: redis.enter_context(private_redis(sock))
                        )
                    )
                    found.append(await one.agent_killed())
                    for row in found:
                        report(row)
                    rows += found
    left = processes_below(folder)
    if left:
        rows[-1].wrong.append(f"processes left: {left}")
    return rows


def _configured(made: Rig) -> list[dict[str, Any]]:
    workers: list[dict[str, Any]] = yaml.safe_load(made.config.read_text())["workers"]
    return workers
