"""Two gateways before the same workers, over HTTP, while the Redis they share dies and returns."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from router.telemetry.store import open_store
from tests.support.gateway import SECRET, RunningGateway, gateway
from tests.support.redis_server import LastingRedis, lasting_redis
from tests.support.simulated import simulated_fleet
from tests.support.waiting import until
from workers.clock import SystemClock
from workers.registry import open_registry
from workers.scripted import Script

if TYPE_CHECKING:
    from collections.abc import Sequence

LONG = bool(os.environ.get("SPECROUTE_PROOF"))
REQUESTS = 2000 if LONG else 160
AT_ONCE = 6
SCRIPTS = {
    "plain": Script(slots=8, tokens=24, step_ms=1.0),
    "prose": Script(slots=8, tokens=24, step_ms=1.0, mode="mtp-n3", n_max=3, acceptance=0.6),
    "code": Script(slots=8, tokens=24, step_ms=2.0, mode="dflash2-margin", n_max=7, acceptance=0.5),
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def _chat(number: int) -> dict[str, Any]:
    kinds = ("Tell me a story about a ship.", "Return a JSON list of users.", "Why is it so cold?")
    asked = f"{kinds[number % 3]} ({number})"
    return {"model": "tiny", "messages": [{"role": "user", "content": asked}], "max_tokens": 24}


class Clients:
    """Everybody who asks; Redis dies and comes back at stated requests."""

    def __init__(self, gateways: Sequence[RunningGateway], server: LastingRedis) -> None:
        self.gateways = gateways
        self.statuses: list[int] = []
        self._left = iter(range(REQUESTS))
        self._events = {REQUESTS * 9 // 20: server.kill, REQUESTS * 12 // 20: server.start}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(self._ask())

    async def _ask(self) -> None:
        for number in self._left:
            if event := self._events.get(number):
                event()
            client = self.gateways[number % 2].client
            answer = await client.post("/v1/chat/completions", json=_chat(number))
            self.statuses.append(answer.status_code)


async def _counted(url: str) -> float:
    store = open_store(url)
    try:
        return sum(sums["requests"] for sums in (await store.totals()).values())
    finally:
        await store.aclose()


async def _decisions(running: RunningGateway) -> list[dict[str, Any]]:
    """What would become of thirty new conversations."""
    bodies = [_chat(90_000 + number) for number in range(30)]
    return [(await running.client.post("/route", json=body)).json() for body in bodies]


def _times(decision: dict[str, Any]) -> dict[str, float]:
    return {c["worker"]: c["predicted_ms"] for c in decision["candidates"]}


async def _disagreement(gateways: Sequence[RunningGateway]) -> tuple[float, int]:
    """The largest relative difference of a predicted time, and how many choices differ.

    A choice may differ where one budget affords an exploration and the other does not.
    """
    both = list(zip(*[await _decisions(running) for running in gateways], strict=True))
    off = [abs(_times(b)[w] / ms - 1.0) for a, b in both for w, ms in _times(a).items()]
    return max(off), sum(a["chosen"] != b["chosen"] for a, b in both)


async def test_no_request_fails_and_nothing_is_lost_when_redis_dies_and_comes_back() -> None:
    async with AsyncExitStack() as stack:
        server = stack.enter_context(lasting_redis())
        _, records = await stack.enter_async_context(simulated_fleet(SCRIPTS))
        gateways = []
        for _ in range(2):
            registry = open_registry(server.url, SECRET, SystemClock())
            stack.push_async_callback(registry.aclose)
            made = gateway(*records, registry=registry, redis_url=server.url)
            gateways.append(await stack.enter_async_context(made))
        clients = Clients(gateways, server)
        await clients.run()
        assert clients.statuses == [200] * REQUESTS
        counted, deadline = 0.0, SystemClock().monotonic() + 60.0
        while counted != REQUESTS and SystemClock().monotonic() < deadline:
            await asyncio.sleep(0.2)
            counted = await _counted(server.url)
        assert counted == REQUESTS
        await asyncio.sleep(2.0)  # within which what was learned is the same everywhere
        off, differ = await _disagreement(gateways)
        assert off < 0.001
        assert differ <= 3
        assert [len(running.outcomes) for running in gateways] == [REQUESTS // 2] * 2
        await until(lambda: all(running.in_flight == 0 for running in gateways), 30.0)
