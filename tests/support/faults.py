"""Faults done to real processes: Redis, an agent, a gateway, and workers that each have one fault.

All the workers' faults of a round happen at once, each to a worker of its own model, so a round
takes as long as the slowest and every other worker is a bystander. Rounds run side by side, each
with processes of its own. Times are seconds from the fault: until the gateway's page shows it, and
until a request is served again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from tests.support.fault_rig import LONG_PROMPT, SECRET, TOKEN, Rig, gone, rig
from tests.support.fault_rows import Row
from tests.support.redis_server import private_redis
from tests.support.running import processes_below
from workers.keys import worker_api_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from pathlib import Path

PATIENCE_S = 150.0  # for anything; a machine under load is slow
POLL_S = 0.1

OPS = {"authorization": f"Bearer {TOKEN}"}


class Round:
    """One round of all faults."""

    def __init__(self, made: Rig, http: httpx.AsyncClient) -> None:
        self.rig, self.http = made, http
        self.first: dict[str, dict[str, Any]] = {}
        self._looking = asyncio.Lock()
        self._looked, self._seen = -POLL_S, dict[str, dict[str, Any]]()

    async def workers(self) -> dict[str, dict[str, Any]]:
        """The gateway's view, at most POLL_S old: every fault of the round looks at it."""
        async with self._looking:
            if time.monotonic() - self._looked >= POLL_S:
                self._seen, self._looked = await self._look(), time.monotonic()
            return self._seen

    async def _look(self) -> dict[str, dict[str, Any]]:
        """Nothing while it does not answer."""
        try:
            answer = await self.http.get("/ops/workers", headers=OPS)
            rows = answer.json()
        except (httpx.HTTPError, ValueError):
            return {}
        rows = rows.get("workers", []) if isinstance(rows, dict) else rows
        return {row["name"]: row for row in rows if "name" in row}

    async def known(self, *names: str) -> dict[str, dict[str, Any]]:
        """Their rows; on a starved machine a look may fail, or a heartbeat be late."""

        async def all_there() -> bool:
            return set(names) <= set(await self.workers())

        await self.until(f"{', '.join(names)} known", all_there)
        return self._seen

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
        row.reason = (await self.known(name))[name].get("crash", "")
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
        now = (await self.known("slow"))["slow"]
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
        async with asyncio.TaskGroup() as tasks:
            for name in self.first:
                tasks.create_task(self.until(f"{name} serves", partial(self.serves, name)))
        self.first = await self.known(*self.first)
        long = "word " * 2500
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(_told(fault))
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
        if (await self.known("bystander"))["bystander"]["pid"] != self.first["bystander"]["pid"]:
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
        await self.until("workers back", self.all_ready)
        row.client = "whole"
        if (await self.known("bystander"))["bystander"]["pid"] != self.first["bystander"]["pid"]:
            row.wrong.append("the bystander was restarted")
        return row

    async def _redis(self, state: str) -> bool:
        answer = await self.http.get("/ready")
        said = answer.text
        return ('"redis":"down"' in said.replace(" ", "")) == (state == "down")

    async def all_ready(self) -> bool:
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
        await self.until("its workers are gone", lambda: gone(pids))
        await self.until("nobody serves", self._nobody_serves)
        row.seen = time.monotonic() - began
        self.rig.start_agent()
        began = time.monotonic()
        await self.until("all workers back", self.all_ready)
        await self.until("a request served", lambda: self.serves("bystander"))
        row.back = time.monotonic() - began
        return row

    async def _nobody_serves(self) -> bool:
        rows = await self.workers()
        return not rows or all(r["state"] != "ready" for r in rows.values())


async def _told(fault: Coroutine[Any, Any, Row]) -> Row:
    """Its row also when it was not found or is not over in time: others are to be told of too."""
    try:
        return await fault
    except (AssertionError, ExceptionGroup) as error:
        return Row(fault.__name__, wrong=[repr(error)])


async def _took(thief: socket.socket, port: int) -> bool:
    try:
        thief.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


async def run_rounds(
    folder: Path,
    rounds: int,
    *,
    slow_s: float,
    redis_s: float,
    report: Callable[[Row], None],
    lanes: int = 1,
) -> list[Row]:
    """All faults, `rounds` times, in as many `lanes` side by side as are asked for."""
    rows: list[Row] = []
    left = count(rounds, -1)

    async def lane(number: int) -> None:
        own = folder / f"lane{number}"
        own.mkdir()
        rows.extend(await _lane(own, lambda: next(left) > 0, slow_s, redis_s, report))

    async with asyncio.TaskGroup() as tasks:
        for number in range(min(lanes, rounds)):
            tasks.create_task(lane(number))
    return rows


async def _lane(
    folder: Path,
    another: Callable[[], bool],
    slow_s: float,
    redis_s: float,
    report: Callable[[Row], None],
) -> list[Row]:
    """One round after the other in one folder, whose processes are counted at the end."""
    rows: list[Row] = []
    with ExitStack() as redis:
        sock = folder / "redis.sock"
        redis.enter_context(private_redis(sock))
        async with rig(folder, slow_s=slow_s) as made, _client(made.url) as http:
            while another():
                found = await _round(Round(made, http), redis, sock, redis_s)
                for row in found:
                    report(row)
                rows += found
    left = processes_below(folder)
    if left:
        rows[-1].wrong.append(f"processes left: {left}")
    return rows


def _client(url: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.AsyncClient(base_url=url, timeout=httpx.Timeout(PATIENCE_S), limits=limits)


async def _round(one: Round, redis: ExitStack, sock: Path, redis_s: float) -> list[Row]:
    """The workers' faults, then Redis', then the agent's."""
    one.first = {w["name"]: {"pid": None} for w in _configured(one.rig)}
    await one.until("all ready", one.all_ready)
    found = await one.all_at_once()
    one.first = await one.known(*one.first)
    redis.close()
    found.append(await one.redis_gone(redis_s, lambda: redis.enter_context(private_redis(sock))))
    found.append(await one.agent_killed())
    return found


def _configured(made: Rig) -> list[dict[str, Any]]:
    workers: list[dict[str, Any]] = yaml.safe_load(made.config.read_text())["workers"]
    return workers
