"""Remote models through a real litellm, before an OpenAI-compatible server on a real socket."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys

import openai
import pytest

from router.core import Reason, Status
from router.relay.fallback import Remote
from router.upstream import litellm_provider
from tests.support.gateway import gateway, refusal, worker_at
from tests.support.raw_server import raw_server
from tests.support.simulated import simulator
from tests.support.waiting import until
from workers.scripted import Script
from workers.state import WorkerState

pytestmark = [
    pytest.mark.slow,
    # litellm's own imports and clients, which are not ours to repair.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore::UserWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
KEY = "key-of-the-remote"


@pytest.fixture(autouse=True, scope="module")
def library():
    """Imported before a client waits: that alone can take half a minute on a busy machine."""
    return litellm_provider._load()


@pytest.fixture(autouse=True)
def swept():
    """What litellm leaves to the collector is collected here, where it is forgiven."""
    yield
    gc.collect()


def _remote(url: str, **changes) -> Remote:
    return Remote("openai/far-model", f"{url}/v1", KEY, **changes)


def _gone() -> object:
    return worker_at("http://127.0.0.1:1", state=WorkerState.FAILED, reason="broke")


def _far(**changes) -> Script:
    return Script(api_key=KEY, tokens=6, **changes)


async def test_a_plain_answer_comes_from_elsewhere_and_says_so():
    async with simulator(_far()) as (app, url), gateway(_gone(), fallback=_remote(url)) as gate:
        answer = await gate.chat(min_p=0.1, max_tokens=5)
        await until(lambda: gate.outcomes)
        text = (await gate.client.get("/metrics")).text
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"].startswith("word0")
    assert answer.headers["x-specroute-fallback"] == "openai/far-model; because=no_worker"
    assert answer.headers["x-specroute-worker"] == "fallback"
    assert answer.headers["x-specroute-mode"] == "remote"
    assert answer.headers["x-specroute-reason"] == "fallback"
    (body,) = app.bodies
    assert (body["model"], body["max_tokens"], "min_p" in body) == ("far-model", 5, False)
    outcome = gate.outcomes[0]
    assert (outcome.status, outcome.worker, outcome.mode) == (Status.OK, "fallback", "remote")
    assert outcome.decision.reason is Reason.FALLBACK
    assert outcome.completion_tokens == 5
    assert outcome.timings.predicted_n is None
    counted = next(row for row in text.splitlines() if row.startswith("specroute_requests_total{"))
    for label in ('worker="fallback"', 'mode="remote"', 'outcome="ok"'):
        assert label in counted


async def test_a_stream_reads_like_ours_and_hides_the_usage_nobody_asked_for():
    async with simulator(_far()) as (_, url), gateway(_gone(), fallback=_remote(url)) as gate:
        plain = await gate.chat(stream=True)
        asked = await gate.chat(stream=True, stream_options={"include_usage": True})
        async with openai.AsyncOpenAI(base_url=f"{gate.url}/v1", api_key="-") as client:
            stream = await client.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            words = [c.choices[0].delta.content async for c in stream if c.choices]
        await until(lambda: len(gate.outcomes) == 3)
    assert plain.headers["x-specroute-fallback"].startswith("openai/far-model")
    assert plain.headers["content-type"].startswith("text/event-stream")
    assert plain.content.endswith(b"data: [DONE]\n\n")
    assert (b'"usage"' in plain.content, b'"usage"' in asked.content) == (False, True)
    assert "".join(word or "" for word in words) == "".join(f"word{n} " for n in range(6))
    assert [outcome.completion_tokens for outcome in gate.outcomes] == [6, 6, 6]


async def test_text_completions_both_ways():
    async with simulator(_far()) as (_, url), gateway(_gone(), fallback=_remote(url)) as gate:
        body = {"model": "tiny", "prompt": "once"}
        whole = await gate.client.post("/v1/completions", json=body)
        stream = await gate.client.post("/v1/completions", json={**body, "stream": True})
    assert whole.json()["choices"][0]["text"].startswith("word0")
    assert stream.content.endswith(b"data: [DONE]\n\n")
    assert stream.headers["x-specroute-fallback"]


async def test_a_full_queue_overflows_and_the_slots_stay_ours():
    far, near = _far(), Script(step_ms=50.0, tokens=40, slots=1)
    async with simulator(far) as (_, url), simulator(near) as (busy, here):
        record = worker_at(here, slots=1)
        async with gateway(record, fallback=_remote(url), max_queue=0) as gate:
            first = asyncio.ensure_future(gate.chat())
            await until(lambda: busy.busy == 1)
            second = await gate.chat()
            assert "x-specroute-fallback" not in (await first).headers
            await until(lambda: gate.in_flight == 0)
    assert second.headers["x-specroute-fallback"].endswith("because=queue_full")


async def test_a_worker_that_breaks_or_lacks_a_feature_is_made_good():
    async def broken(peer) -> None:
        await peer.request()
        await peer.send(refusal(b"500 Internal Server Error", {"error": {"message": "x"}}))

    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "what?"}, image]}]
    async with (
        simulator(_far()) as (app, url),
        raw_server(broken) as server,
        gateway(worker_at(server.url), fallback=_remote(url)) as gate,
    ):
        answer = await gate.chat()
        seen = await gate.chat(messages=messages)
        await until(lambda: gate.in_flight == 0)
    assert answer.headers["x-specroute-fallback"].endswith("because=worker_failed")
    assert seen.headers["x-specroute-fallback"].endswith("because=invalid_value")
    assert app.bodies[1]["messages"] == messages


@pytest.mark.parametrize(
    ("settings", "headers", "fields"),
    [
        ({"fallback_when": ("full",)}, {}, {}),
        ({}, {"x-specroute-worker": "plain"}, {}),
        ({}, {"x-specroute-mode": "ar"}, {}),
        ({}, {}, {"grammar": 'root ::= "a"'}),
        ({}, {}, {"messages": []}),
    ],
)
async def test_what_is_not_to_leave_the_house_does_not(settings, headers, fields):
    async with (
        simulator(_far()) as (app, url),
        gateway(_gone(), fallback=_remote(url), **settings) as gate,
    ):
        answer = await gate.chat(headers=headers, **fields)
    assert answer.status_code in (400, 503)
    assert "x-specroute-fallback" not in answer.headers
    assert app.bodies == []


async def test_a_remote_that_speaks_llama_gets_everything_where_wanted():
    async with simulator(_far()) as (app, url):
        remote = _remote(url, extra_fields=True)
        async with gateway(_gone(), fallbacks=(("tiny", remote),)) as gate:
            answer = await gate.chat(grammar='root ::= "a"', min_p=0.1)
    assert answer.status_code == 200
    assert (app.bodies[0]["grammar"], app.bodies[0]["min_p"]) == ('root ::= "a"', 0.1)


@pytest.mark.parametrize("trouble", ["nobody there", "wrong key"])
async def test_when_the_remote_fails_too_our_own_refusal_stands(trouble):
    async with simulator(_far()) as (_, url):
        at = "http://127.0.0.1:1" if trouble == "nobody there" else url
        remote = Remote("openai/far-model", f"{at}/v1", "wrong")
        async with gateway(_gone(), fallback=remote) as gate:
            answer = await gate.chat()
            await until(lambda: gate.outcomes)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (503, "no_worker")
    assert "the fallback" in error["message"]
    assert "wrong" not in error["message"]
    assert answer.headers["x-specroute-fallback"]
    assert len(gate.outcomes) == 1


async def test_a_client_that_leaves_ends_the_remotes_work():
    async with simulator(_far(step_ms=50.0)) as (app, url):
        app.script = Script(api_key=KEY, tokens=1000, step_ms=50.0)
        async with gateway(_gone(), fallback=_remote(url)) as gate:
            asking = asyncio.ensure_future(gate.chat(stream=True))
            await until(lambda: app.busy == 1, 60.0)
            asking.cancel()
            await until(lambda: app.cancelled == 1)
            await until(lambda: gate.outcomes)
    assert gate.outcomes[0].status is Status.CLIENT_GONE


def test_nothing_of_it_is_imported_before_it_is_needed():
    code = (
        "import sys, router.app.parts as p; from router.settings import Settings;"
        "from router.relay.fallback import Remote;"
        "p.build(Settings(fallback=Remote('openai/x')));"
        "sys.exit('litellm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
