"""The stand-in answers like the real thing, on real sockets, and misbehaves when told to."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from tests.support.serving import served
from tests.support.waiting import until
from workers.scripted import Script
from workers.simulator import Simulator
from workers.timings import Timings

CHAT = "/v1/chat/completions"
ASK = {"messages": [{"role": "user", "content": "a b c"}], "max_tokens": 9}
SPECULATIVE = Script(mode="mtp-n3", n_max=3, acceptance=0.5, step_ms=1.0)


@pytest.fixture
def app():
    return Simulator(SPECULATIVE)


@pytest.fixture
async def http(app):
    async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=5.0) as client:
        yield client


def events(text):
    lines = [line for line in text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


async def test_a_plain_answer_tells_its_timings(http):
    body = (await http.post(CHAT, json=ASK)).json()
    timings = Timings.from_payload(body["timings"])
    assert body["choices"][0]["message"]["content"].split()[-1] == "word8"
    assert timings.predicted_n == body["usage"]["completion_tokens"] == 9
    assert timings.acceptance_rate is not None


async def test_a_stream_carries_timings_on_its_last_chunk(http):
    plain = events((await http.post(CHAT, json=ASK | {"stream": True})).text)
    assert [("timings" in event) for event in plain] == [False] * 9 + [True]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    with_usage = events((await http.post(CHAT, json=ASK | options)).text)
    assert with_usage[-1]["choices"] == []
    assert "timings" in with_usage[-1]
    assert "timings" not in with_usage[-2]


async def test_text_completions(http):
    body = (await http.post("/v1/completions", json={"prompt": "a", "max_tokens": 2})).json()
    assert body["choices"][0]["text"] == "word0 word1 "


async def test_its_own_counters_are_the_sum_of_what_it_reported(http):
    answers = [(await http.post(CHAT, json=ASK)).json()["timings"] for _ in range(3)]
    page = (await http.get("/metrics")).text
    drafted = sum(answer["draft_n"] for answer in answers)
    assert f"llamacpp:spec_decode_num_draft_tokens_total {drafted}\n" in page
    assert "llamacpp:tokens_predicted_total 27\n" in page


async def test_slots_are_taken_in_turn(app, http):
    app.script = Script(slots=1, tokens=20, step_ms=5.0)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(http.post(CHAT, json=ASK))
        await until(lambda: app.busy)
        slots = (await http.get("/slots")).json()
        assert [slot["is_processing"] for slot in slots] == [True]
        assert app.served < 3
    assert app.served == 3
    assert app.busy == 0


async def test_a_client_that_leaves_ends_its_generation(app, http):
    app.script = Script(step_ms=10.0)
    async with http.stream("POST", CHAT, json=ASK | {"stream": True, "max_tokens": 1000}) as answer:
        await anext(answer.aiter_bytes())
    await until(lambda: app.cancelled == 1)
    assert app.busy == 0


async def test_keys_loading_and_long_prompts(app, http):
    app.script = Script(api_key="k", context=3)
    assert (await http.get("/health")).status_code == 200
    assert (await http.get("/props")).json()["error"]["type"] == "authentication_error"
    headers = {"authorization": "Bearer k"}
    refused = (await http.post(CHAT, json=ASK, headers=headers)).json()["error"]
    assert (refused["type"], refused["n_prompt_tokens"], refused["n_ctx"]) == (
        "exceed_context_size_error",
        4,
        3,
    )
    app.script = Script(load_s=1e9)
    loading = await http.get("/health")
    assert (loading.status_code, loading.json()["error"]["message"]) == (503, "Loading model")


async def test_scripted_faults(app, http):
    streamed = ASK | {"stream": True}
    app.script = Script(fault="error")
    assert (await http.post(CHAT, json=ASK)).status_code == 500
    app.script = Script(fault="close")
    with pytest.raises(httpx.RemoteProtocolError):
        await http.post(CHAT, json=streamed)
    app.script = Script(fault="stall")
    with pytest.raises(httpx.ReadTimeout):
        await http.post(CHAT, json=streamed, timeout=0.3)
    app.script = Script(fault="garbage")
    assert b"nonsense" in (await http.post(CHAT, json=streamed)).content
    app.script = Script(fault="no_timings")
    assert "timings" not in (await http.post(CHAT, json=ASK)).json()


async def test_every_second_request_and_changes_while_it_runs(app, http):
    changed = await http.put("/script", json={"fault": "error", "fault_every": 2})
    assert changed.json()["fault"] == "error"
    statuses = [(await http.post(CHAT, json=ASK)).status_code for _ in range(4)]
    assert statuses == [200, 500, 200, 500]


async def test_bodies_it_cannot_read(http):
    assert (await http.post(CHAT, content=b"{")).status_code == 400
    assert (await http.post(CHAT, content=b"[]")).status_code == 400
    assert (await http.get("/nowhere")).status_code == 404
