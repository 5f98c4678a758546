"""The whole gateway before scripted workers: SDK, accounts, faults, Redis."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

import openai
import pytest
import redis

from router.core import Status
from router.relay import Budgets
from tests.support.gateway import ADMIN, SECRET, gateway, worker_at
from tests.support.simulated import simulated_fleet, simulator
from tests.support.waiting import until
from workers.clock import SystemClock
from workers.keys import worker_api_key
from workers.registry import open_registry
from workers.scripted import Script

pytestmark = pytest.mark.slow


def _script(name: str, **changes) -> Script:
    return Script(api_key=worker_api_key(SECRET, name), **changes)


def _trio(**changes) -> dict[str, Script]:
    return {
        "plain": _script("plain", **changes),
        "mtp": _script("mtp", mode="mtp-n3", n_max=3, acceptance=0.7, **changes),
        "dflash": _script("dflash", mode="dflash2-margin", n_max=7, acceptance=0.5, **changes),
    }


def _sdk(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)


async def _ask(client: openai.AsyncOpenAI, number: int):
    """One request in one of four forms; what its answer said about itself, and its headers."""
    messages = [{"role": "user", "content": f"Write item {number} as JSON."}]
    stream, usage = number % 2 == 1, number % 4 == 3
    options = {"stream_options": {"include_usage": True}} if usage else {}
    raw = await client.chat.completions.with_raw_response.create(
        model="tiny", messages=messages, stream=stream, max_tokens=8 + number % 5, **options
    )
    if not stream:
        return raw.parse().model_extra["timings"], raw.headers
    timings = None
    async for chunk in raw.parse():
        timings = (chunk.model_extra or {}).get("timings", timings)
    return timings, raw.headers


def _counters(text: str, name: str) -> Counter[str]:
    """One counter by mode, summed over the classes."""
    found: Counter[str] = Counter()
    for labels, value in re.findall(rf"^{name}\{{(.*?)\}} (\S+)$", text, re.MULTILINE):
        found[re.search(r'mode="(.*?)"', labels)[1]] += int(float(value))
    return +found


async def test_sixty_requests_and_every_account_agrees():
    async with simulated_fleet(_trio()) as (apps, records), gateway(*records) as gate:
        async with _sdk(gate.url) as client:
            told = await asyncio.gather(*[_ask(client, number) for number in range(60)])
        await until(lambda: len(gate.outcomes) == 60)
        text = (await gate.client.get("/metrics")).text
    expected: dict[str, Counter[str]] = {n: Counter() for n in ("predicted_n", "draft_n")}
    for timings, headers in told:
        for name, counter in expected.items():
            counter[headers["x-specroute-mode"]] += timings.get(name, 0)
    assert _counters(text, "specroute_generation_tokens_total") == +expected["predicted_n"]
    assert _counters(text, "specroute_draft_tokens_total") == +expected["draft_n"]
    drafted = sum(app.counters.drafted for app in apps.values())
    assert drafted == expected["draft_n"].total()
    assert sum(app.served for app in apps.values()) == 60
    assert {outcome.status for outcome in gate.outcomes} == {Status.OK}


async def test_the_client_sees_usage_only_if_it_asked():
    async with (
        simulated_fleet({"plain": _script("plain")}) as (_, records),
        gateway(*records) as gate,
    ):
        plain = await gate.chat(stream=True)
        asked = await gate.chat(stream=True, stream_options={"include_usage": True})
    assert b'"usage"' not in plain.content
    assert b'"usage"' in asked.content


async def test_usage_that_only_the_gateway_asked_for_is_hidden():
    async with simulator(_script("ext")) as (app, url):
        record = worker_at(url, "ext", engine="external")
        async with gateway(record) as gate:
            answer = await gate.chat(stream=True)
            await until(lambda: gate.outcomes)
    assert app.bodies[0]["stream_options"] == {"include_usage": True}
    assert b'"usage"' not in answer.content
    assert answer.content.endswith(b"data: [DONE]\n\n")
    assert gate.outcomes[0].completion_tokens == 16


async def test_text_completions_work_both_ways():
    async with (
        simulated_fleet(_trio()) as (_, records),
        gateway(*records) as gate,
        _sdk(gate.url) as client,
    ):
        whole = await client.completions.create(model="tiny", prompt="once", max_tokens=4)
        stream = await client.completions.create(
            model="tiny", prompt="once", max_tokens=4, stream=True
        )
        text = "".join([c.choices[0].text async for c in stream if c.choices])
    assert whole.choices[0].text == text
    assert whole.usage.completion_tokens == 4


@pytest.mark.parametrize("fault", ["error", "close", "garbage", "no_timings"])
async def test_a_faulty_worker_harms_nobody_else(fault):
    """Every answer is whole or says why it is not, whatever one of two workers does."""
    scripts = {
        "good": _script("good"),
        "bad": _script("bad", fault=fault, fault_every=2),
    }
    async with simulated_fleet(scripts) as (_, records), gateway(*records) as gate:
        answers = await asyncio.gather(*[gate.chat(stream=n % 2 == 0) for n in range(24)])
        await until(lambda: len(gate.outcomes) == 24)
        await until(lambda: gate.in_flight == 0)
    for answer in answers:
        if answer.status_code == 200:
            good = b"[DONE]" in answer.content or b'"message"' in answer.content
            assert good or b'"error"' in answer.content
        else:
            assert answer.status_code in (502, 503)
            assert answer.json()["error"]["code"] in ("worker_failed", "no_worker")
    assert sum(answer.status_code == 200 for answer in answers) >= 12


async def test_a_stall_before_the_first_byte_moves_on():
    scripts = {"a": _script("a", prefill_ms=10_000.0), "b": _script("b")}
    budgets = Budgets(first_byte=0.2, between_chunks=0.2, prompt_tokens_per_second=1e6)
    async with (
        simulated_fleet(scripts) as (_, records),
        gateway(*records, budgets=budgets, policy="least_loaded") as gate,
    ):
        answer = await gate.chat()
        await until(lambda: gate.outcomes)
    assert answer.status_code == 200
    assert answer.headers["x-specroute-worker"] == "b"
    assert gate.outcomes[0].retried


async def test_a_stall_in_the_middle_ends_the_stream_with_a_timeout():
    scripts = {"a": _script("a", fault="stall")}
    budgets = Budgets(first_byte=0.3, between_chunks=0.3, prompt_tokens_per_second=1e6)
    async with simulated_fleet(scripts) as (apps, records):
        async with gateway(*records, budgets=budgets) as gate:
            answer = await gate.chat(stream=True)
            await until(lambda: gate.outcomes)
        await until(lambda: apps["a"].cancelled == 1)
    assert b'"code":"timeout"' in answer.content
    assert gate.outcomes[0].status is Status.TIMEOUT


async def test_clients_that_leave_end_the_workers_generations():
    scripts = {"a": _script("a", step_ms=50.0, tokens=1000, slots=4)}
    async with simulated_fleet(scripts) as (apps, records), gateway(*records) as gate:
        asking = [asyncio.ensure_future(gate.chat(stream=n % 2 == 0)) for n in range(4)]
        await until(lambda: apps["a"].busy == 4)
        for task in asking:
            task.cancel()
        await until(lambda: apps["a"].cancelled == 4, 2.0)
        await until(lambda: gate.in_flight == 0)
    assert [outcome.status for outcome in gate.outcomes] == [Status.CLIENT_GONE] * 4


async def test_in_flight_never_exceeds_the_slots_and_the_queue_drains_fairly():
    most = Counter()
    async with simulated_fleet(_trio(step_ms=2.0)) as (apps, records), gateway(*records) as gate:

        async def look() -> None:
            while True:
                for name, app in apps.items():
                    most[name] = max(most[name], app.busy)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            looking = group.create_task(look())
            answers = await asyncio.gather(*[gate.chat() for _ in range(60)])
            looking.cancel()
    assert {answer.status_code for answer in answers} == {200}
    assert max(most.values()) == 2


async def test_workers_come_and_outcomes_go_through_a_real_redis(redis_url):
    async with simulated_fleet(_trio()) as (_, records):
        registry = open_registry(redis_url, SECRET, SystemClock())
        for record in records:
            await registry.publish(record)
        async with gateway(redis_url=redis_url, registry=registry) as gate:
            await until(lambda: len(gate.fleet.everything()) == 3)
            assert (await gate.client.get("/ready")).json()["redis"] == "up"
            for number in range(6):
                await gate.chat(stream=number % 2 == 0)
            totals = await _redis_totals(redis_url)
            assert totals["requests"] == 6
            assert totals["predicted_n"] == 6 * 16
            summary = (await gate.client.get("/ops/summary", headers=ADMIN)).json()
            assert summary["redis"] == "up"


async def _redis_totals(url: str) -> Counter[str]:
    """Plain totals over all models, classes and modes, once six requests are there."""
    found: Counter[str] = Counter()

    def read() -> bool:
        found.clear()
        with redis.Redis.from_url(url, decode_responses=True) as client:
            for key in client.scan_iter("specroute:totals:*"):
                found.update({k: int(float(v)) for k, v in client.hgetall(key).items()})
        return found["requests"] == 6

    await until(read)
    return found
