"""The chart in service on one machine: rolls and losses under 32 long streams.

Pods are processes run by `tests.support.kubelet` exactly as the rendered manifests say; workers are
real llama.cpp servers, Redis is real. In planned changes no stream may be cut, refused or failed;
in unplanned ones a stream may fail, but with an error event, never silently.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.cluster import SECRETS, Cluster, cluster
from tests.support.long_streams import Streams, long_streams
from tests.support.sentinel import sentinel_group
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path

    from tests.support.kubelet import Pod

PROOF = bool(os.environ.get("SPECROUTE_PROOF"))
ROUNDS, TOKENS = (3, 300) if PROOF else (1, 60)
CLIENTS = 32
HEARD_S = 5.0  # every gateway knows of a drain by then; within a second where nothing is loaded
SILENCE_S = 6.0  # limits.chunk_timeout: how long a silent worker is believed
GATEWAY = {"longestStreamSeconds": 300, "preStopSeconds": 4}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.engine,
    pytest.mark.timeout(3500 if PROOF else 900),
]


def pool(mode: str, replicas: int, slots: int) -> dict[str, Any]:
    worker = {"model": "tiny", "mode": mode, "context": 1024, "slots": slots, "threads": 1}
    resources = {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}
    return {
        "replicas": replicas,
        "loadSeconds": 120,
        "resources": resources,
        "workers": [worker],
    }


# 36 slots: none is without streams, and while one is rolled a few requests wait for the others.
SLOTS = 12
POOLS = {"plain": pool("ar", 2, SLOTS), "mtp": pool("mtp-n3", 1, SLOTS)}


@dataclass
class Run:
    """A cluster under load, and what happened to streams in each phase."""

    cluster: Cluster
    streams: Streams
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def phase(self, name: str, change: Awaitable[Any]) -> Counter[str]:
        """Make one change; then wait until every stream that was open in it has ended."""
        before, begun = Counter(self.streams.outcomes), time.monotonic()
        retried = self.streams.retried
        await change
        took = time.monotonic() - begun
        await self.turn_over()
        during = self.streams - before
        self.figures[name] = {
            "seconds": round(took, 1),
            "streams": dict(during),
            "retried": self.streams.retried - retried,
        }
        return during

    async def turn_over(self) -> None:
        """Until every client has finished the stream that it has now."""
        seen = self.streams.finished.copy()
        now = self.streams.finished
        await until(lambda: all(now[n] > seen[n] for n in range(CLIENTS)), 300.0)


@asynccontextmanager
async def under_load(values: dict[str, Any], name: str, root: Path) -> AsyncIterator[Run]:
    async with cluster({"pools": POOLS, **values}) as running:
        key = SECRETS["api-key"]
        async with long_streams(running.service.url, key, CLIENTS, TOKENS) as streams:
            run = Run(running, streams)
            pods = len(running.workers())
            await until(lambda: streams.open == CLIENTS and len(streams.workers) == pods, 120.0)
            yield run
        _report(run, name, root)


def _report(run: Run, name: str, root: Path) -> None:
    """Figures for people, outside the repository's files; only where the long version runs."""
    if not PROOF:
        return
    folder = root / "artifacts"
    folder.mkdir(exist_ok=True)
    stops = [(p.name, round(p.stop_took, 2)) for p in run.cluster.past if p.stop_took]
    report = {
        "installed_seconds": round(run.cluster.installed_in, 1),
        "phases": run.figures,
        "all": dict(run.streams.outcomes),
        "tokens": run.streams.tokens,
        "pod_stop_seconds": stops,
        "reasons": Counter(run.streams.reasons).most_common(20),
    }
    (folder / f"k8s-{name}.json").write_text(json.dumps(report, indent=2) + "\n")


def _nothing_was_forced(run: Run) -> None:
    """No grace ran out, and no probe restarted anything."""
    pods = [*run.cluster.past, *run.cluster.pods.values()]
    assert not [p.name for p in pods if p.killed_after_grace]
    assert not [p.name for p in pods if p.restarts]


async def test_no_planned_change_cuts_a_stream(pytestconfig: pytest.Config) -> None:
    async with under_load({"gateway": GATEWAY}, "planned", pytestconfig.rootpath) as run:
        for number in range(ROUNDS):
            for name, change in (
                ("gateway roll", run.cluster.roll_gateways()),
                ("worker roll", run.cluster.roll_workers()),
                ("redis replaced, empty", run.cluster.replace_redis()),
            ):
                ended = await run.phase(f"{name} {number + 1}", change)
                assert set(ended) == {"whole"}, (name, ended, run.streams.reasons[-5:])
                assert ended["whole"] >= CLIENTS
    _nothing_was_forced(run)
    assert run.streams.outcomes.keys() == {"whole"}
    drained = [p for p in run.cluster.past if "redis" not in p.name and "gateway" not in p.name]
    assert len(drained) == 3 * ROUNDS
    for pod in drained:
        _left_properly(pod, run.streams)


def _left_properly(pod: Pod, streams: Streams) -> None:
    """Nobody was sent to it once it had said that it leaves; a kubelet that had the time saw so.

    With short streams a pod may be gone before its second readiness probe, and that is right. What
    was asked for before it was gone and began afterwards is its successor's, which has its name.
    """
    when = {what: at for at, what in pod.events}
    left, gone = when["terminating"], when["gone"]
    late = [
        asked
        for asked, began, name in streams.begun
        if name == pod.name and asked > left + HEARD_S and began < gone
    ]
    assert not late, (pod.events, late)
    assert when.get("not ready", 0.0) > left or gone - left < pod.unready_takes, pod.events
    assert pod.events[-1][1] == "gone"


async def test_what_no_one_planned_ends_in_a_clean_error_or_a_retry(
    pytestconfig: pytest.Config,
) -> None:
    limits = {"chunk_timeout": SILENCE_S, "first_byte_timeout": SILENCE_S}
    values = {"gateway": {**GATEWAY, "config": {"limits": limits}}}
    async with under_load(values, "unplanned", pytestconfig.rootpath) as run:
        for number in range(ROUNDS):
            crash = run.cluster.replace_redis(crash=True)
            ended = await run.phase(f"redis lost {number + 1}", crash)
            assert set(ended) == {"whole"}, run.streams.reasons[-5:]
            for name, change in (("node lost", _lose_node), ("node frozen", _freeze_node)):
                ended = await run.phase(f"{name} {number + 1}", change(run))
                said = (name, ended, run.streams.reasons[-5:])
                assert set(ended) <= {"whole", "failed"}, said
                # The lost worker's, and no other; none where its last tokens were on their way
                # to a client that reads behind: sixty tokens are sent in a moment.
                assert ended["failed"] <= SLOTS, said
                assert ended["whole"] >= CLIENTS - SLOTS
        assert all(pod.ready and not pod.restarts for pod in run.cluster.gateways())


async def _in_mid_answer(run: Run) -> Pod:
    """The worker with most streams of which their clients have seen less than half."""
    await until(lambda: bool(run.streams.early(TOKENS // 2)), 60.0)
    (name, _), *_ = run.streams.early(TOKENS // 2).most_common(1)
    return run.cluster.pods[name]


async def _lose_node(run: Run) -> None:
    victim = await _in_mid_answer(run)
    await run.cluster.lose(victim)
    await run.cluster.replace_lost(victim)


async def _freeze_node(run: Run) -> None:
    """It falls silent with its connections open; after a while it is given up and replaced."""
    victim = await _in_mid_answer(run)
    victim.freeze()
    await asyncio.sleep(3 * SILENCE_S)
    await run.cluster.lose(victim)
    await run.cluster.replace_lost(victim)


async def test_a_failover_of_redis_is_not_noticed_by_any_stream(
    pytestconfig: pytest.Config,
) -> None:
    async with sentinel_group() as group:
        values = {"gateway": GATEWAY, "redis": {"enabled": False, "url": group.url}}
        async with under_load(values, "failover", pytestconfig.rootpath) as run:
            for name, change in (
                ("failover", group.fail_over()),
                ("master lost", group.lose_master()),
            ):
                ended = await run.phase(name, change)
                assert set(ended) == {"whole"}, (name, ended, run.streams.reasons[-5:])
            async with asyncio.timeout(120):
                while await _redis_states(run.cluster) != {"up"}:  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
        _nothing_was_forced(run)


async def _redis_states(running: Cluster) -> set[str]:
    """What each gateway says of Redis."""
    async with httpx.AsyncClient(trust_env=False, timeout=60.0) as client:
        answers = [await client.get(f"http://{p.ip}:8080/ready") for p in running.gateways()]
    return {answer.json()["redis"] for answer in answers}
