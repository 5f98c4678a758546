"""A pool that scales to zero and comes back for who waits, as its rendered ScaledObject says."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.autoscaler import Autoscaler
from tests.support.cluster import SECRETS, Cluster, cluster
from tests.support.long_streams import Streams, long_streams
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROUNDS = 3 if os.environ.get("SPECROUTE_PROOF") else 1
CLIENTS, TOKENS, IDLE_S = 6, 60, 60
POOL = "specroute-plain"
VALUES: dict[str, Any] = {
    "gateway": {"longestStreamSeconds": 120, "preStopSeconds": 4, "readinessPath": "/health"},
    "keda": {"prometheus": "http://prometheus.example:9090"},
    "pools": {
        "plain": {
            "loadSeconds": 120,
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
            "keda": {"enabled": True, "minReplicas": 0, "maxReplicas": 2, "idleSeconds": IDLE_S},
            "workers": [{"model": "tiny", "mode": "ar", "context": 1024, "slots": 2, "threads": 1}],
        }
    },
}

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(600)]


@asynccontextmanager
async def scaled(running: Cluster) -> AsyncIterator[Autoscaler]:
    scaler, stop = Autoscaler(running, POOL, hurry=15.0), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(scaler.run(stop))
        yield scaler
        stop.set()


async def _everybody_twice(running: Cluster) -> Streams:
    """Every client has two streams, and then nobody wants anything."""
    async with long_streams(running.service.url, SECRETS["api-key"], CLIENTS, TOKENS) as streams:
        done = streams.finished
        await until(lambda: all(done[n] >= 2 for n in range(CLIENTS)), 240.0)
    return streams


async def test_a_pool_goes_to_zero_and_comes_back_for_who_waits() -> None:
    async with cluster(VALUES) as running:
        assert not running.workers()
        async with scaled(running) as scaler:
            for _ in range(ROUNDS):
                streams = await _everybody_twice(running)
                assert streams.outcomes.keys() == {"whole"}, streams.reasons[-5:]
                await until(lambda: scaler.sizes[-1] == 0 and not running.workers(), 120.0)
        assert scaler.sizes[0] == scaler.sizes[-1] == 0
        assert max(scaler.sizes) == 2  # for six of them one pod of two slots is not enough
        left = [pod for pod in running.past if pod.name.startswith(POOL)]
        assert {pod.name for pod in left} == {f"{POOL}-0", f"{POOL}-1"}
        assert not [pod.name for pod in left if pod.killed_after_grace or pod.restarts]
        assert not [pod.name for pod in running.gateways() if pod.restarts]
