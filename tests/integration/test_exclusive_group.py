"""Two workers that cannot be resident together, behind a gateway: swapped without cutting a stream.

With stand-ins whose speeds are scripted, and with the real engine on the tiny trio.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby

import pytest

from tests.fakes.outcomes import outcome
from tests.support.gateway import ADMIN, SECRET, gateway
from tests.support.supervised import PATIENCE_S, simulated
from tests.support.waiting import until
from workers.agent import AgentOptions, run_agent
from workers.clock import SystemClock
from workers.registry import MemoryRegistry
from workers.spec import WorkerSpec
from workers.tiny import NO_COST, prepare

pytestmark = pytest.mark.slow

CLOCK = SystemClock()
BINARY = os.environ.get("LLAMA_SERVER")


@asynccontextmanager
async def one_gpu(specs, tmp_path):
    """An agent with an exclusive group and a gateway before it; the first worker is resident."""
    registry, stop = MemoryRegistry(CLOCK), asyncio.Event()
    options = AgentOptions(tmp_path, SECRET, dict(os.environ), heartbeat=0.2, host="here")
    async with asyncio.timeout(PATIENCE_S * 4), asyncio.TaskGroup() as tasks:
        tasks.create_task(run_agent(specs, registry, options, CLOCK, stop))
        async with gateway(registry=registry) as gate:
            names = {spec.name for spec in specs}  # one that sleeps may be heard of later
            await until(lambda: {w.name for w in gate.fleet.everything()} == names, PATIENCE_S)
            await until(lambda: _serving(gate) == {specs[0].name}, PATIENCE_S)
            yield gate
        stop.set()


def _serving(gate):
    return {w.name for w in gate.fleet.everything() if w.record.state.serves}


def _record(gate, name):
    return next(w.record for w in gate.fleet.everything() if w.name == name)


def pair(mode="ar", model="other", **script):
    """Two stand-ins in one group: `a` serves tiny, `b` serves `model`."""
    timed = {"step_ms": 5.0, "tokens": 40} | script
    specs = (simulated("a", "ar", script=timed), simulated("b", mode, script=timed))
    models = ("tiny", model)
    return [
        replace(spec, model=model, exclusive_group="gpu", slots=2)
        for spec, model in zip(specs, models, strict=True)
    ]


async def streamed(gate, model, tokens=40):
    """One stream to its end: its words; fails when it was cut."""
    answer = await gate.chat(model=model, stream=True, max_tokens=tokens)
    assert answer.status_code == 200, answer.text
    assert answer.text.rstrip().endswith("data: [DONE]"), answer.text[-300:]
    return answer.text.count('"content"')


async def test_the_minority_waits_and_is_served_as_a_batch(tmp_path):
    async with one_gpu(pair(), tmp_path) as gate:
        # Known to be quick: four short answers are not worth interrupting the resident for.
        _teach(gate, {"a": ("ar", 200.0), "b": ("ar", 200.0)})
        work = [streamed(gate, "tiny", 200) for _ in range(6)]
        work += [streamed(gate, "other") for _ in range(4)]
        counts = await asyncio.gather(*work)
        await until(lambda: len(gate.outcomes) == 10)
        assert counts == [200] * 6 + [40] * 4
        assert {outcome.status.value for outcome in gate.outcomes} == {"ok"}
        # Nobody of the minority came between those of the majority: one swap served all.
        assert [outcome.worker for outcome in gate.outcomes] == ["a"] * 6 + ["b"] * 4
        assert _serving(gate) == {"b"}
        assert await streamed(gate, "tiny") == 40  # and back, as the other is idle


async def test_a_swap_waits_for_the_streams_of_the_resident(tmp_path):
    async with one_gpu(pair(model="tiny"), tmp_path) as gate:
        running = asyncio.create_task(streamed(gate, "tiny", 400))
        await until(lambda: gate.in_flight == 1)
        answer = await gate.client.post("/ops/workers/b/load", headers=ADMIN)
        assert answer.status_code == 200
        await until(lambda: not _serving(gate))
        behind = await streamed(gate, "tiny")  # nobody serves now: it waits for the swap
        assert (await running, behind) == (400, 40)
        await until(lambda: len(gate.outcomes) == 2)
        assert [outcome.worker for outcome in gate.outcomes] == ["a", "b"]
        assert _record(gate, "b").load_s > 0.0


async def test_the_decision_shows_what_a_swap_would_cost(tmp_path):
    async with one_gpu(pair(model="tiny"), tmp_path) as gate:
        body = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}
        rows = (await gate.client.post("/route", json=body)).json()["candidates"]
        swap = {row["worker"]: row["parts"]["swap"] for row in rows}
        assert swap["a"] == 0.0
        assert swap["b"] >= 1000.0
        assert (await gate.chat(max_tokens=4)).headers["x-specroute-worker"] == "a"


def _teach(gate, speeds):
    """What an earlier day has shown of both."""
    for worker in gate.fleet.everything():
        mode, speed = speeds[worker.name]
        key, now = worker.record.spec_hash, CLOCK.wall()
        for number in range(30):
            gate.app.parts.services.policy.observe(
                outcome(
                    model=worker.record.model,
                    worker=worker.name,
                    mode=mode,
                    worker_key=key,
                    tokens_per_second=speed,
                    at=now - 30 + number,
                )
            )


async def test_what_the_mix_makes_best_becomes_resident(tmp_path):
    slow, fast = pair(mode="mtp-n3", model="tiny", step_ms=25.0)
    async with one_gpu([slow, fast], tmp_path) as gate:
        _teach(gate, {"a": ("ar", 40.0), "b": ("mtp-n3", 100.0)})
        async with asyncio.timeout(PATIENCE_S * 2):
            while _serving(gate) != {"b"}:
                await asyncio.gather(*(streamed(gate, "tiny", 64) for _ in range(2)))
        counts = await asyncio.gather(*(streamed(gate, "tiny") for _ in range(4)))
        assert counts == [40] * 4
        assert {outcome.status.value for outcome in gate.outcomes} == {"ok"}


async def test_what_a_drained_resident_leaves_is_served_by_the_other(tmp_path):
    async with one_gpu(pair(model="tiny"), tmp_path) as gate:
        running = asyncio.create_task(streamed(gate, "tiny", 200))
        await until(lambda: gate.in_flight == 1)
        assert (await gate.client.post("/ops/workers/a/drain", headers=ADMIN)).is_success
        await until(lambda: _record(gate, "a").held)
        counts = await asyncio.gather(running, *(streamed(gate, "tiny") for _ in range(3)))
        assert counts == [200, 40, 40, 40]
        await until(lambda: len(gate.outcomes) == 4)
        assert [outcome.worker for outcome in gate.outcomes] == ["a", "b", "b", "b"]
        refused = await gate.chat(model="tiny@a", max_tokens=4)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "no_worker")
        assert (await gate.client.post("/ops/workers/a/undrain", headers=ADMIN)).is_success
        await until(lambda: not _record(gate, "a").held)
        assert (await gate.chat(model="tiny@a", max_tokens=4)).is_success


def reader_and_writer():
    """`a` reads slowly and writes fast, `b` the other way round."""
    one, two = pair(model="tiny")
    scripts = ({"prefill_ms": 5.0, "step_ms": 2.0}, {"prefill_ms": 0.2, "step_ms": 15.0})
    for spec, script in zip((one, two), scripts, strict=True):
        yield replace(spec, args=("--script", json.dumps(script)))


def _read_and_written(gate):
    """What an earlier day has shown of both."""
    figures = {"a": (5.0, 500.0), "b": (0.2, 66.0)}
    for worker in gate.fleet.everything():
        per_token_ms, speed = figures[worker.name]
        changes = {"worker": worker.name, "worker_key": worker.record.spec_hash, "mode": "ar"}
        for number in range(20):
            seen = outcome(tokens_per_second=speed, at=CLOCK.wall() - number, **changes)
            read = replace(seen.timings, prompt_n=200, prompt_ms=200 * per_token_ms)
            gate.app.parts.services.policy.observe(replace(seen, timings=read))


async def test_two_gateways_do_not_undo_each_others_swaps(tmp_path):
    async with (
        one_gpu([*reader_and_writer()], tmp_path) as reads,
        gateway(registry=reads.registry) as writes,
    ):
        await until(lambda: _serving(writes) == {"a"})
        for gate in (reads, writes):
            _read_and_written(gate)
        orders, send = [], reads.registry.send
        reads.registry.send = lambda order: (orders.append(order.worker), send(order))[1]
        for number in range(14):
            long = f"{number} " + "word " * 100
            asked = reads.chat(long, stream=True, max_tokens=4), streamed(writes, "tiny", 40)
            assert (await asyncio.gather(*asked))[0].text.rstrip().endswith("[DONE]")
        # Each change of plan is harder than the one before; undone at once it would be a dozen.
        assert orders[:1] == ["b"]
        assert len(orders) <= 5, orders
        await until(lambda: len(reads.outcomes) == len(writes.outcomes) == 14)
        found = {outcome.status.value for gate in (reads, writes) for outcome in gate.outcomes}
        assert found == {"ok"}


@pytest.mark.engine
async def test_the_real_engine_swaps_between_modes_and_models(tmp_path):
    trio = prepare(tmp_path / "trio", NO_COST)
    common = {
        "target": trio.target,
        "binary": BINARY,
        "exclusive_group": "gpu",
        "context": 1024,
        "slots": 2,
        "threads": 1,
        "acceptance_floor": 0.0,
    }
    specs = [
        WorkerSpec("a", "tiny", "ar", **common),
        WorkerSpec("b", "other", "mtp-n3", **common),
    ]
    async with one_gpu(specs, tmp_path) as gate:
        work = [streamed(gate, model, 96) for model in ("tiny", "other") * 4]
        assert all(await asyncio.gather(*work))
        await until(lambda: len(gate.outcomes) == 8)
        # In batches: how often is worth it hangs on how long the answers and the loads take here.
        served = [outcome.worker for outcome in gate.outcomes]
        batches = [worker for worker, _ in groupby(served)]
        assert 2 <= len(batches) <= 4, served
        assert {outcome.status.value for outcome in gate.outcomes} == {"ok"}
        loads = {w.name: w.record.load_s for w in gate.fleet.everything()}
        assert all(0.0 < seconds < 60.0 for seconds in loads.values())
