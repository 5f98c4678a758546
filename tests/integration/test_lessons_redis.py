"""Gateways that learn together through one real Redis: memory, samples, models, the study."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack

import orjson
import pytest

from classifier import Remembered, extract, load
from classifier.artifact import SHIPPED, read
from classifier.authored import rows as authored_rows
from classifier.line import Line, to_bytes
from classifier.proof import disguised, examples
from classifier.traffic import MAX_EXAMPLES, Example, pack, unpack
from router.in_redis import connect
from router.telemetry.lessons import Lessons
from router.telemetry.store.base import StoreUnavailable
from tests.support.gateway import ANSWER, DONE, SECRET, delta, gateway, stream_answer, worker_at
from tests.support.raw_server import raw_server
from tests.support.waiting import until
from workers.clock import SystemClock
from workers.keys import seal
from workers.registry import open_registry

pytestmark = pytest.mark.slow


@pytest.fixture
async def lessons():
    """Makes doors to Redis, and closes them."""
    made: list[Lessons] = []

    def make(url: str, name: str = "one", secret: str = SECRET) -> Lessons:
        made.append(Lessons(connect(url), secret, name))
        return made[-1]

    yield make
    for one in made:
        await one.aclose()


async def test_samples_are_counted_capped_and_come_back(redis_url, lessons):
    store = lessons(redis_url)
    rows = [pack(Example((at, at + 1), "code", float(at))) for at in range(30)]
    await store.add_samples(rows[:10])
    await store.add_samples(rows[10:])
    assert [example.at for example in unpack(await store.samples())] == list(range(30))
    assert await store.unstudied() == 30
    assert await store.begin_study(60)
    assert not await lessons(redis_url, "two").begin_study(60)
    await store.end_study()
    assert await store.unstudied() == 0
    await store.add_samples([pack(Example((1,), "qa", 99.0))] * (MAX_EXAMPLES + 5))
    kept = await store.samples()
    assert len(kept) == MAX_EXAMPLES


async def test_a_line_of_another_cluster_is_not_believed(redis_url, lessons):
    ours, theirs = lessons(redis_url), lessons(redis_url, secret="another")  # noqa: S106
    assert await ours.line() is None
    await ours.publish(b"line")
    assert await ours.line() == b"line"
    assert await theirs.line() is None
    assert await ours.number() == 1
    await ours._client.set("specroute:classifier:line", seal(SECRET, "record", b"line"))
    assert await ours.line() is None


async def test_gateways_hear_each_other_once_and_a_new_one_hears_everything(redis_url, lessons):
    one, two = lessons(redis_url, "one"), lessons(redis_url, "two")
    first = Remembered(("app", "talk"), "json", 1000.0, 3.5)
    second = Remembered(("app",), "story", 1001.0)
    await one.heard()
    await one.tell([first])
    await two.tell([second])
    assert await two.heard() == [first, second]  # its own too: it may have been restarted
    assert await one.heard() == [second]
    assert await one.heard() == []
    await two.tell([first])
    assert await two.heard() == []
    await one._client.xadd("specroute:classifier:answers", {"gateway": "x", "answers": "{"})
    assert await two.heard() == []


async def test_an_outage_is_told_as_one(lessons):
    store = lessons("unix:///nowhere/r.sock")
    for call in (store.samples, store.heard, store.number, store.end_study):
        with pytest.raises(StoreUnavailable):
            await call()


DATA = orjson.dumps({"order": "A-17", "items": ["lamp", "desk"], "total": 129}).decode()
SYSTEM = "You are the intake of a furniture shop."
MESSAGE = "Hello, it is Mary again, the lamp came but the desk did not. Could you look into it?"


def body(*messages: str, system: str = SYSTEM) -> dict:
    turns = [{"role": "user", "content": text} for text in messages]
    return {"model": "tiny", "messages": [{"role": "system", "content": system}, *turns]}


async def test_an_application_that_extracts_json_is_known_to_all_after_three_answers(redis_url):
    async def answers_json(peer):
        await peer.request()
        await stream_answer(peer, delta(DATA), ANSWER[-1], DONE)

    assert load().predict(extract(body(MESSAGE))).workload_class == "prose"
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(raw_server(answers_json))
        registry = open_registry(redis_url, SECRET, SystemClock())
        settings = {"redis_url": redis_url, "registry": registry}
        one = await stack.enter_async_context(gateway(worker_at(worker.url), **settings))
        two = await stack.enter_async_context(gateway(**settings))
        await two.until(lambda: two.fleet.everything())
        before = await two.client.post("/route", json=body(MESSAGE))
        assert before.json()["class"] == "prose"
        for number in range(3):
            sent = body(f"{MESSAGE} This is message {number}.")
            answer = await one.client.post("/v1/chat/completions", json=sent)
            assert answer.status_code == 200

        async def known() -> bool:
            found = (await two.client.post("/route", json=body(MESSAGE))).json()
            return found["class"] == "structured" and found["kind"] == "json"

        async with asyncio.timeout(60):
            while not await known():  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.1)
        other = await two.client.post("/route", json=body(MESSAGE, system="You are a florist."))
        assert other.json()["class"] == "prose"
        bare = {"model": "tiny", "messages": [{"role": "user", "content": MESSAGE}]}
        assert (await two.client.post("/route", json=bare)).json()["class"] == "prose"
        await registry.aclose()


@pytest.mark.slow
async def test_traffic_in_an_unknown_language_teaches_both_gateways(redis_url, lessons):
    """A language no word list knows: the study runs as a process, and both gateways serve it."""
    rng = random.Random(3)
    unknown = [row for row in authored_rows(seed=5) if row.language == "ru"]
    rng.shuffle(unknown)
    found = [
        Example(example.hashes, example.kind, 1000.0 + at)
        for at, example in enumerate(examples(unknown, blind=True))
    ]
    met, later = found[:700], unknown[700:900]
    store = lessons(redis_url, "traffic")
    await store.add_samples([pack(example) for example in met])
    shipped = load()
    async with AsyncExitStack() as stack:
        registry = open_registry(redis_url, SECRET, SystemClock())
        settings = {"redis_url": redis_url, "registry": registry, "learning_interval": 0.2}
        gates = [await stack.enter_async_context(gateway(**settings)) for _ in range(2)]
        for gate in gates:
            served = gate.app.parts.dispatcher.predictor
            await until(lambda served=served: served.version.startswith("learned-"), 240)
        promoted = b'classifier_studies_total{action="promoted"} 1'
        metrics = [gate.app.parts.services.metrics_text for gate in gates]
        await until(lambda: sum(promoted in text() for text in metrics) == 1, 60)
        versions = {gate.app.parts.dispatcher.predictor.version for gate in gates}
        assert len(versions) == 1
        learned = gates[1].app.parts.dispatcher.predictor
        features = [(extract(disguised(row.body)), row.answer) for row in later]
        right = [
            sum(model.predict(f).workload_class is answer for f, answer in features)
            for model in (shipped, learned)
        ]
        assert right[1] >= right[0] + 0.15 * len(later)
        assert await store.unstudied() == 0
        # A new gateway begins with what the others have learned.
        third = await stack.enter_async_context(gateway(**settings))
        await until(lambda: third.app.parts.dispatcher.predictor.version in versions)
        await registry.aclose()


async def test_a_gateway_that_may_not_learn_keeps_nothing_and_serves_the_shipped_model(
    redis_url, lessons
):
    shipped = read(SHIPPED)
    store = lessons(redis_url)
    line = Line(shipped.version, 0.0, shipped)
    async with AsyncExitStack() as stack:
        registry = open_registry(redis_url, SECRET, SystemClock())
        settings = {"redis_url": redis_url, "registry": registry}
        one = await stack.enter_async_context(gateway(learning=False, **settings))
        two = await stack.enter_async_context(gateway(**settings))
        await store.publish(to_bytes(line))
        schools = [
            run.__self__
            for gate in (one, two)
            for run in gate.app.parts.background
            if getattr(run, "__name__", "") == "share"
        ]
        await until(lambda: schools[1]._number == 1)
        await schools[0].exchange()
        assert schools[0]._number == 0
        await registry.aclose()
