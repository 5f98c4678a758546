"""The gateway before real llama.cpp servers: same answers, real cancellation, real death."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import openai
import orjson
import pytest

from router.core import Status
from router.relay.sample import read_sample
from tests.support.engines import RealWorker, real_workers
from tests.support.gateway import RunningGateway, gateway
from tests.support.waiting import until
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.engine, pytest.mark.slow]

MODES = ("ar", "mtp-n3", "dflash2-margin")
LONG = {"max_tokens": 3500, "ignore_eos": True, "temperature": 0}
COUNTED = ("cache_n", "prompt_n", "predicted_n", "draft_n", "draft_n_accepted")


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RealWorker]]:
    """One real server per mode."""
    with real_workers(tmp_path_factory.mktemp("engines"), *MODES) as started:
        yield {worker.name: worker for worker in started}


def _before(workers: dict[str, RealWorker]):
    return gateway(*[worker.record() for worker in workers.values()])


async def _idle(worker: RealWorker, within: float) -> None:
    """Wait until the server itself shows no slot at work."""
    async with asyncio.timeout(within):
        while await worker.busy():  # noqa: ASYNC110 - the server has no event to wait for
            await asyncio.sleep(0.1)


async def test_every_mode_answers_the_sdk_and_is_accounted_for(workers):
    async with (
        _before(workers) as gate,
        openai.AsyncOpenAI(base_url=f"{gate.url}/v1", api_key="x", max_retries=0) as client,
    ):
        told = []
        for name in workers:
            for stream in (True, False):
                raw = await client.chat.completions.with_raw_response.create(
                    model=f"tiny@{name}",
                    messages=[{"role": "user", "content": "Count from 1 to 20."}],
                    max_tokens=24,
                    stream=stream,
                )
                answer = raw.parse()
                chunks = [chunk async for chunk in answer] if stream else [answer]
                told.append((raw.headers["x-specroute-worker"], chunks[-1].model_extra["timings"]))
        await until(lambda: len(gate.outcomes) == len(told))
    for (worker, timings), outcome in zip(told, gate.outcomes, strict=True):
        assert outcome.worker == worker
        expected = Timings.from_payload(timings)
        for name in COUNTED:
            assert getattr(outcome.timings, name) == getattr(expected, name), name
        assert outcome.prompt_tokens == expected.prompt_tokens


@pytest.mark.parametrize("endpoint", ["chat", "text"])
async def test_a_plain_answer_is_what_the_server_itself_would_say(workers, endpoint):
    """Streamed and assembled here, whole there: the same JSON, ids and times apart."""
    worker = workers["ar"]
    body = {"model": "tiny", "max_tokens": 16, "temperature": 0, "seed": 1, "cache_prompt": False}
    if endpoint == "chat":
        path = "/v1/chat/completions"
        body |= {"messages": [{"role": "user", "content": "Say it."}], "logprobs": True}
    else:
        path = "/v1/completions"
        body |= {"prompt": "Say it.", "logprobs": 2}
    async with gateway(worker.record()) as gate, httpx.AsyncClient(timeout=30) as client:
        url = worker.url + path
        direct = (await client.post(url, json=body, headers=worker.headers)).json()
        through = (await gate.client.post(path, json=body)).json()
    assert _shape(through) == _shape(direct)
    assert through["choices"] == direct["choices"]
    assert through["usage"] == direct["usage"]


def _shape(value):
    """Names and types, all the way down; order does not matter."""
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    return type(value).__name__


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", ["ar", "mtp", "dflash2"])
async def test_leaving_ends_the_generation(workers, name, stream):
    worker = workers[name]
    async with gateway(worker.record()) as gate:
        asking = asyncio.ensure_future(gate.chat("Count.", stream=stream, **LONG))
        await until(lambda: gate.in_flight == 1)
        await asyncio.sleep(0.5)
        assert await worker.busy() == 1
        asking.cancel()
        await _idle(worker, within=3.0)
        await until(lambda: gate.in_flight == 0, 3.0)
        assert [outcome.status for outcome in gate.outcomes] == [Status.CLIENT_GONE]


async def test_leaving_several_choices_keeps_the_slot_until_the_server_is_idle(
    workers, monkeypatch
):
    monkeypatch.setattr("router.fleet.lingering.PROBE_S", 0.3)
    worker = workers["ar"]
    body = LONG | {"n": 2, "max_tokens": 600}
    async with gateway(worker.record()) as gate:
        asking = asyncio.ensure_future(gate.chat("Count.", **body))
        await until(lambda: gate.in_flight == 1)
        await asyncio.sleep(0.5)
        asking.cancel()
        await until(lambda: gate.outcomes)
        assert gate.in_flight == 1
        await until(lambda: gate.in_flight == 0, 60.0)
        assert await worker.busy() == 0


async def test_more_requests_than_slots_are_never_queued_at_the_server(workers):
    worker = workers["mtp"]
    async with gateway(worker.record()) as gate:
        asking = asyncio.gather(*[gate.chat(str(n), max_tokens=12) for n in range(10)])
        most = 0
        while not asking.done():
            most = max(most, gate.in_flight)
            await asyncio.sleep(0.005)
        answers = await asking
    assert {answer.status_code for answer in answers} == {200}
    assert most == worker.slots


async def test_a_prompt_beyond_the_context_is_refused_in_openais_words(workers):
    async with gateway(workers["ar"].record(context=10**6)) as gate:
        text = "word " * 9000
        for stream in (True, False):
            answer = await gate.chat(text, stream=stream, max_tokens=4)
            error = answer.json()["error"]
            assert answer.status_code == 400
            assert error["code"] == "context_length_exceeded"
            assert error["n_prompt_tokens"] > error["n_ctx"]


def _generated(gate) -> list[int | None]:
    return [o.generated for o in gate.outcomes if o.endpoint in ("/v1/messages", "/v1/responses")]


def _output_text(response) -> str:
    items = [item for item in response["output"] if item["type"] == "message"]
    return "".join(block["text"] for item in items for block in item["content"])


async def test_other_surfaces_reach_the_server(workers):
    async with _before(workers) as gate:
        post = gate.client.post
        turns = [{"role": "user", "content": "hello"}]
        tokens = (await post("/tokenize", json={"content": "hello"})).json()["tokens"]
        text = (await post("/detokenize", json={"tokens": tokens})).json()["content"]
        message = (await post("/v1/messages", json={"max_tokens": 4, "messages": turns})).json()
        counted = (await post("/v1/messages/count_tokens", json={"messages": turns})).json()
        response = await post("/v1/responses", json={"input": "hello", "max_output_tokens": 4})
        await until(lambda: len(_generated(gate)) == 2)
        assert _generated(gate) == [4, 4]
        said = [read_sample(o.answer_sample)[:2] for o in gate.outcomes]
        thought = "".join(block.get("thinking", "") for block in message["content"])
        words = "".join(block.get("text", "") for block in message["content"])
        assert said[-2] == (words, thought)
        assert said[-1][0] == _output_text(response.json())
        assert words + thought
        assert "".join(said[-1])
    assert text.strip() == "hello"
    assert message["type"] == "message"
    assert counted["input_tokens"] > 0
    assert response.json()["object"] == "response"


async def test_a_killed_server_ends_streams_with_an_error_and_plain_ones_elsewhere(tmp_path):
    with real_workers(tmp_path, "ar", "mtp-n3") as (first, second):
        async with gateway(first.record(), second.record(), policy="least_loaded") as gate:
            stream = asyncio.ensure_future(_stream(gate, first.name))
            plain = asyncio.ensure_future(gate.chat("Count.", max_tokens=600, ignore_eos=True))
            await until(lambda: gate.in_flight == 2)
            await asyncio.sleep(0.5)
            placed = {w.name: w.in_flight for w in gate.fleet.everything()}
            first.process.kill()
            text = await stream
            assert b"[DONE]" not in text
            error = orjson.loads(text.rpartition(b"data: ")[2])["error"]
            assert error["code"] == "worker_failed"
            answer = await plain
            assert answer.status_code == 200
            if placed[first.name] == 2:
                assert answer.headers["x-specroute-reason"] == "retry"
            assert (await gate.chat(max_tokens=4)).headers["x-specroute-worker"] == second.name


async def _stream(gate: RunningGateway, worker: str) -> bytes:
    answer = await gate.chat("Count.", stream=True, model=f"tiny@{worker}", **LONG)
    return answer.content
