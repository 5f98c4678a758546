"""The path of a request over real sockets, with workers that do what the test says."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import orjson
import pytest

from router.core import Reason, Status
from tests.support.gateway import (
    ANSWER,
    DONE,
    SECRET,
    STREAM_HEAD,
    answers_well,
    delta,
    framed,
    gateway,
    refusal,
    stream_answer,
    worker_at,
)
from tests.support.raw_server import raw_server
from tests.support.waiting import until
from workers.arms import N_MAX, Arm
from workers.keys import worker_api_key
from workers.state import WorkerState

LOADING = refusal(
    b"503 Service Unavailable",
    {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
)
BROKEN = refusal(
    b"500 Internal Server Error",
    {"error": {"code": 500, "message": "Compute error.", "type": "server_error"}},
)


@asynccontextmanager
async def served(*scripts, settings=None, **changes):
    """A gateway before one scripted worker per script, named a, b, ...; a is preferred."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(raw_server(script)) for script in scripts]
        records = [
            worker_at(server.url, name, **changes)
            for name, server in zip("abc", servers, strict=False)
        ]
        values = {"policy": "least_loaded", **(settings or {})}
        running = await stack.enter_async_context(gateway(*records, **values))
        yield running, *servers


ways = pytest.mark.parametrize("wire", [True, False], ids=["wire", "asgi"])
"""Connections of our own, and the same through uvicorn's ASGI."""


def says(answer: bytes):
    """A worker that answers everything with the same bytes."""

    async def script(peer):
        await peer.request()
        await peer.send(answer)

    return script


PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"


@pytest.mark.parametrize("answer", [PAGE, refusal(b"200 OK", [1])])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_200_that_is_no_answer_moves_to_the_next_worker(answer, stream):
    async with served(says(answer), answers_well) as (gate, *_):
        moved = await gate.chat(stream=stream)
        await until(lambda: gate.outcomes)
    assert moved.status_code == 200
    assert gate.outcomes[0].worker == "b"
    assert gate.outcomes[0].retried
    async with served(says(answer)) as (gate, *_):
        refused = await gate.chat(stream=stream)
    assert refused.status_code == 502
    assert refused.json()["error"]["code"] == "worker_failed"
    assert "that is no answer" in refused.json()["error"]["message"]


async def _stays_silent(peer) -> None:
    await peer.request()
    await peer.until_gone()


async def _dies_at_once(peer) -> None:
    await peer.request()
    peer.reset()


@ways
async def test_a_streams_bytes_arrive_unchanged(wire):
    async with served(answers_well, settings={"wire": wire}) as (gate, server):
        answer = await gate.chat(stream=True)
        assert answer.content == b"".join((*ANSWER, DONE))
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-specroute-worker"] == "a"
        assert answer.headers["x-specroute-mode"] == "ar"
        assert answer.headers["x-specroute-class"]
        assert answer.headers["x-specroute-reason"]
        assert float(answer.headers["x-specroute-overhead-ms"]) >= 0
        await until(lambda: gate.outcomes)
    outcome = gate.outcomes[0]
    assert outcome.status is Status.OK
    assert outcome.completion_tokens == 3
    assert outcome.timings.draft_n_accepted == 1
    assert outcome.ttft_s is not None
    assert outcome.finish_reason == "stop"
    assert len(server.peers) == 1


@ways
async def test_a_plain_answer_is_put_together(wire):
    async with served(answers_well, settings={"wire": wire}) as (gate, _):
        answer = await gate.chat()
        body = answer.json()
        await until(lambda: gate.outcomes)
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"]["content"] == "one two three"
    assert body["timings"]["predicted_n"] == 3
    assert gate.outcomes[0].timings.predicted_n == 3


async def test_the_worker_sees_the_body_and_nothing_of_the_client():
    seen = []

    async def script(peer):
        seen.append(await peer.request())
        await stream_answer(peer, *ANSWER, DONE)

    odd = {"messages": [{"role": "user", "content": "é"}], "model": "tiny", "new_field": [1.50]}
    body = orjson.dumps(odd | {"stream": True}) + b"  "
    headers = {
        "content-type": "application/json",
        "authorization": "Bearer the-clients-own",
        "cookie": "c=1",
        "x-conversation-id": "abc",
        "x-forwarded-for": "10.0.0.1",
    }
    async with served(script) as (gate, _):
        await gate.client.post("/v1/chat/completions", content=body, headers=headers)
    (request,) = seen
    assert request.body == body
    assert request.line == b"POST /v1/chat/completions HTTP/1.1"
    key = worker_api_key(SECRET, "a")
    assert request.headers.pop(b"authorization") == f"Bearer {key}".encode()
    sent = set(request.headers) - {b"authorization"}
    assert sent == {b"host", b"content-type", b"content-length"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("failure", [_dies_at_once, says(LOADING), says(BROKEN)])
async def test_a_failure_before_the_first_byte_moves_to_the_next_worker(failure, stream):
    async with served(failure, answers_well) as (gate, *_):
        answer = await gate.chat(stream=stream)
        await until(lambda: gate.outcomes)
    assert answer.status_code == 200
    assert answer.headers["x-specroute-worker"] == "b"
    assert answer.headers["x-specroute-reason"] == Reason.RETRY
    (outcome,) = gate.outcomes
    assert outcome.retried
    assert outcome.status is Status.OK
    assert outcome.worker == "b"


async def test_nobody_listening_moves_on_and_keeps_others_away():
    async with raw_server(answers_well) as alive:
        gone = worker_at("http://127.0.0.1:1", "a")
        async with gateway(gone, worker_at(alive.url, "b"), policy="least_loaded") as gate:
            first = await gate.chat()
            assert first.headers["x-specroute-reason"] == Reason.RETRY
            second = await gate.chat()
            assert second.headers["x-specroute-reason"] == Reason.LEAST_LOADED
            assert second.headers["x-specroute-worker"] == "b"


async def test_loading_is_no_failure_of_the_worker():
    async with served(says(LOADING)) as (gate, _):
        for _ in range(5):
            answer = await gate.chat()
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "loading"
            assert answer.headers["retry-after"]
        assert gate.fleet.everything()[0].available


async def test_two_failures_are_told():
    async with served(_dies_at_once, _dies_at_once, answers_well) as (gate, *servers):
        answer = await gate.chat()
        await until(lambda: gate.outcomes)
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "worker_failed"
    assert [len(server.peers) for server in servers] == [1, 1, 0]
    assert [o.status for o in gate.outcomes] == [Status.UPSTREAM_ERROR]


async def test_a_plain_answer_that_breaks_in_the_middle_starts_again_elsewhere():
    async def breaks(peer):
        await peer.request()
        await stream_answer(peer, *ANSWER[:2], end=False)
        peer.reset()

    async with served(breaks, answers_well) as (gate, *_):
        answer = await gate.chat()
    assert answer.json()["choices"][0]["message"]["content"] == "one two three"
    assert answer.headers["x-specroute-worker"] == "b"


async def test_a_pinned_request_goes_nowhere_else():
    async with served(_dies_at_once, answers_well) as (gate, _, other):
        by_header = await gate.chat(headers={"x-specroute-worker": "a"})
        by_name = await gate.chat(model="tiny@a")
        assert {by_header.status_code, by_name.status_code} <= {502, 503}
        assert len(other.peers) == 0


async def test_a_refusal_of_the_request_is_the_clients():
    too_long = {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 9000,
            "n_ctx": 4096,
        }
    }
    async with served(says(refusal(b"400 Bad Request", too_long)), answers_well) as (gate, _, b):
        answer = await gate.chat(stream=True)
        await until(lambda: gate.outcomes)
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert error["code"] == "context_length_exceeded"
    assert error["type"] == "exceed_context_size_error"
    assert (error["n_prompt_tokens"], error["n_ctx"]) == (9000, 4096)
    assert answer.headers["x-should-retry"] == "false"
    assert answer.headers["x-specroute-worker"] == "a"
    assert len(b.peers) == 0
    assert gate.outcomes[0].status is Status.CLIENT_ERROR


@pytest.mark.parametrize("clean", [True, False])
async def test_death_in_the_middle_of_a_stream_is_an_event(clean):
    async def dies(peer):
        await peer.request()
        await stream_answer(peer, *ANSWER[:2], end=clean)
        if not clean:
            peer.reset()

    async with served(dies, answers_well) as (gate, *_):
        answer = await gate.chat(stream=True)
        await until(lambda: gate.outcomes)
        await until(lambda: gate.in_flight == 0)
    text = answer.content
    assert text.startswith(b"".join(ANSWER[:2]))
    assert b"[DONE]" not in text
    last = orjson.loads(text.rpartition(b"data: ")[2])
    assert last["error"]["code"] == "worker_failed"
    assert gate.outcomes[0].status is Status.UPSTREAM_ERROR
    assert gate.outcomes[0].completion_tokens == 2


async def test_a_workers_own_error_event_goes_through_and_is_counted():
    error = b'data: {"error":{"code":500,"message":"Compute error.","type":"server_error"}}\n\n'

    async def fails(peer):
        await peer.request()
        await stream_answer(peer, ANSWER[0], error)

    async with served(fails) as (gate, _):
        answer = await gate.chat(stream=True)
        await until(lambda: gate.outcomes)
    assert answer.content == ANSWER[0] + error
    assert gate.outcomes[0].status is Status.UPSTREAM_ERROR


@ways
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("after", range(len(ANSWER) + 1))
async def test_a_disconnect_at_any_moment_ends_the_work_and_frees_the_slot(
    after, stream, wire, monkeypatch
):
    monkeypatch.setattr("router.fleet.lingering.NOTICE_S", 0.05)
    reached = asyncio.Event()

    async def script(peer):
        await peer.request()
        if after:
            await stream_answer(peer, *ANSWER[: after - 1], end=False)
        reached.set()
        await peer.until_gone()

    async with served(script, settings={"wire": wire}) as (gate, server):
        asking = asyncio.ensure_future(gate.chat(stream=stream))
        await reached.wait()
        assert gate.in_flight == 1
        asking.cancel()
        await asyncio.wait_for(server.peers[0].gone.wait(), 1.0)
        await until(lambda: gate.in_flight == 0)
        await until(lambda: gate.outcomes)
    assert [o.status for o in gate.outcomes] == [Status.CLIENT_GONE]
    assert gate.outcomes[0].worker == "a"


async def test_a_disconnect_in_the_queue_leaves_it_at_once():
    async with served(_stays_silent, slots=1) as (gate, server):
        async with asyncio.TaskGroup() as group:
            first = group.create_task(gate.chat())
            await until(lambda: gate.in_flight == 1)
            second = group.create_task(gate.chat())
            admission = gate.app.parts.services.admission
            await until(lambda: admission.depth() == 1)
            second.cancel()
            await until(lambda: admission.depth() == 0)
            first.cancel()
        await until(lambda: len(gate.outcomes) == 2)
        assert len(server.peers) == 1


async def test_a_hundred_requests_share_one_slot():
    running = most = 0

    async def script(peer):
        nonlocal running, most
        await peer.request()
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        await stream_answer(peer, *ANSWER, DONE)

    async with served(script, slots=1) as (gate, _):
        answers = await asyncio.gather(*[gate.chat(stream=n % 2 == 0) for n in range(100)])
        await until(lambda: len(gate.outcomes) == 100)
    assert most == 1
    assert {answer.status_code for answer in answers} == {200}
    assert {outcome.status for outcome in gate.outcomes} == {Status.OK}


async def test_a_full_queue_is_told_when_to_come_back():
    settings = {"max_queue": 1}
    async with (
        served(_stays_silent, slots=1, settings=settings) as (gate, _),
        asyncio.TaskGroup() as group,
    ):
        waiting = [group.create_task(gate.chat())]
        await until(lambda: gate.in_flight == 1)
        waiting.append(group.create_task(gate.chat()))
        await until(lambda: gate.app.parts.services.admission.depth() == 1)
        refused = await gate.chat(stream=True)
        for task in waiting:
            task.cancel()
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "queue_full"
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["x-specroute-class"]


async def test_a_stream_that_waits_is_kept_alive(monkeypatch):
    monkeypatch.setattr("router.relay.keep_alive.KEEP_ALIVE_S", 0.05)
    go = asyncio.Event()

    async def slow(peer):
        await peer.request()
        await go.wait()
        await stream_answer(peer, *ANSWER, DONE)

    async with served(slow) as (gate, _):
        body = {"model": "tiny", "stream": True, "messages": [{"role": "user", "content": "x"}]}
        async with gate.client.stream("POST", "/v1/chat/completions", json=body) as answer:
            parts = answer.aiter_raw()
            first = await anext(parts)
            assert first.startswith(b": ")
            assert answer.status_code == 200
            go.set()
            rest = b"".join([part async for part in parts])
    assert rest.endswith(b"".join((*ANSWER, DONE)))
    assert b"data:" not in (first + rest).removesuffix(b"".join((*ANSWER, DONE)))


@pytest.mark.interpreted
async def test_a_failure_after_the_early_opening_is_an_event(monkeypatch):
    monkeypatch.setattr("router.relay.keep_alive.KEEP_ALIVE_S", 0.05)

    async def slow(peer):
        await peer.request()
        await asyncio.sleep(0.2)
        peer.reset()

    async with served(slow) as (gate, _):
        answer = await gate.chat(stream=True)
        assert answer.status_code == 200
        last = orjson.loads(answer.content.rpartition(b"data: ")[2])
        assert last["error"]["code"] == "worker_failed"
        assert b"[DONE]" not in answer.content


@ways
async def test_a_slow_reader_holds_the_worker_back(wire):
    """64 KB a chunk: without back-pressure the gateway would swallow all of it."""
    sent = 0

    async def endless(peer):
        nonlocal sent
        await peer.request()
        await peer.send(STREAM_HEAD)
        chunk = framed(delta("x" * 65_536))
        for _ in range(2_000):
            await peer.send(chunk)
            sent += 1

    async with served(endless, settings={"wire": wire}) as (gate, _):
        body = {"model": "tiny", "stream": True, "messages": [{"role": "user", "content": "x"}]}
        async with gate.client.stream("POST", "/v1/chat/completions", json=body) as answer:
            assert answer.status_code == 200
            held = -1
            async with asyncio.timeout(30):
                while held != sent:
                    held = sent
                    await asyncio.sleep(0.5)
            assert sent < 1_000  # sockets' own buffers hold some
        await until(lambda: gate.outcomes)


async def test_two_conversations_turns_find_their_home():
    async with served(answers_well, answers_well) as (gate, *_):
        turns = [{"role": "user", "content": "a long beginning " * 20}]
        await gate.chat(messages=turns)
        await until(lambda: gate.outcomes)
        home = gate.outcomes[0].worker
        turns += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "go on"}]
        prefixes = gate.app.parts.dispatcher.prefixes
        assert prefixes.home(gate.outcomes[0].conversation) == home
        await gate.chat(messages=turns)
        await until(lambda: len(gate.outcomes) == 2)
    assert gate.outcomes[0].conversation == gate.outcomes[1].conversation


async def test_embeddings_without_a_worker_that_offers_them_are_501():
    async with served(answers_well) as (gate, _):
        answer = await gate.client.post("/v1/embeddings", json={"model": "tiny", "input": "x"})
    assert answer.status_code == 501
    assert answer.json()["error"]["type"] == "not_supported_error"
    assert answer.headers["x-should-retry"] == "false"


async def test_embeddings_go_to_the_worker_that_offers_them():
    body = refusal(b"200 OK", {"object": "list", "data": []})
    async with raw_server(says(body)) as able, raw_server(answers_well) as other:
        records = (
            worker_at(other.url, "a"),
            worker_at(able.url, "b", features=("embeddings",)),
        )
        async with gateway(*records, policy="least_loaded") as gate:
            answer = await gate.client.post("/v1/embeddings", json={"model": "tiny", "input": "x"})
    assert answer.json() == {"object": "list", "data": []}
    assert answer.headers["x-specroute-worker"] == "b"


async def test_several_choices_are_asked_for_and_sent_whole():
    seen = []

    async def script(peer):
        seen.append(await peer.request())
        await peer.send(refusal(b"200 OK", {"choices": [], "usage": {"completion_tokens": 7}}))

    async with served(script) as (gate, _):
        answer = await gate.chat(n=2)
        await until(lambda: gate.outcomes)
    assert answer.json()["usage"]["completion_tokens"] == 7
    assert b'"stream"' not in seen[0].body
    assert gate.outcomes[0].completion_tokens == 7


async def test_a_hint_and_a_mode_are_obeyed_and_told():
    async with raw_server(answers_well) as server:
        records = (
            worker_at(server.url, "a"),
            worker_at(server.url, "m", mode="mtp-n3", effective_mode="mtp-n3"),
        )
        async with gateway(*records) as gate:
            headers = {"x-specroute-class": "reasoning", "x-specroute-mode": "mtp-n3"}
            answer = await gate.chat(headers=headers)
            missing = await gate.chat(headers={"x-specroute-mode": "eagle3"})
    assert answer.headers["x-specroute-class"] == "reasoning"
    assert answer.headers["x-specroute-mode"] == "mtp-n3"
    assert missing.status_code == 400
    assert missing.json()["error"]["code"] == "mode_unavailable"


@ways
async def test_shutting_down_lets_running_streams_finish(wire):
    go = asyncio.Event()

    async def slow(peer):
        await peer.request()
        await stream_answer(peer, ANSWER[0], end=False)
        await go.wait()
        await peer.send(*[framed(part) for part in (*ANSWER[1:], DONE)], b"0\r\n\r\n")

    async with (
        served(slow, settings={"wire": wire}) as (gate, _),
        httpx.AsyncClient(base_url=gate.url) as client,
    ):
        body = {"model": "tiny", "stream": True, "messages": [{"role": "user", "content": "x"}]}
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            parts = answer.aiter_raw()
            received = await anext(parts)
            gate.server.should_exit = True
            await asyncio.sleep(0.3)
            go.set()
            received += b"".join([part async for part in parts])
    assert received == b"".join((*ANSWER, DONE))


async def test_a_worker_with_arms_is_asked_for_the_chosen_one():
    bodies = []

    async def keeps(peer):
        bodies.append(orjson.loads((await peer.request()).body))
        await stream_answer(peer, *ANSWER, DONE)

    async with served(
        keeps,
        settings={"policy": "learned"},
        arms=(Arm("ar", 0),),
        mode="mtp-n3",
        effective_mode="mtp-n3",
    ) as (gate, _):
        answers = [
            await gate.chat(headers={"x-specroute-mode": "ar"}),
            await gate.chat(headers={"x-specroute-mode": "mtp-n3"}),
            await gate.chat(**{N_MAX: 1}),
        ]
        await until(lambda: len(gate.outcomes) == 3)
    assert [body.get(N_MAX) for body in bodies] == [0, None, 1]
    assert [a.headers["x-specroute-mode"] for a in answers] == ["ar", "mtp-n3", "mtp-n3"]
    assert [outcome.mode for outcome in gate.outcomes] == ["ar", "mtp-n3", "custom"]
    keys = [outcome.worker_key.partition("~")[2] for outcome in gate.outcomes]
    assert keys == ["ar", "", "custom"]


@asynccontextmanager
async def waiting_gateway(seconds: float, script=answers_well):
    """A gateway without a worker, one request that waits for one, and the worker that may come."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(raw_server(script))
        settings = {"models": (("tiny", ()),), "wait_for_worker_s": seconds}
        gate = await stack.enter_async_context(gateway(**settings))
        async with asyncio.TaskGroup() as tasks:
            yield gate, server, tasks.create_task(gate.chat(stream=True))


async def test_a_request_waits_for_a_worker_that_is_still_to_come():
    async with waiting_gateway(60.0) as (gate, server, request):
        admission = gate.app.parts.services.admission
        await gate.until(lambda: admission.depth("tiny") == 1)
        await gate.publish(worker_at(server.url, "late", state=WorkerState.LOADING))
        await asyncio.sleep(0.05)
        assert admission.depth("tiny") == 1
        await gate.publish(worker_at(server.url, "late"))
        answer = await request
        assert answer.status_code == 200
        assert answer.headers["x-specroute-worker"] == "late"
        assert gate.in_flight == 0


async def test_a_worker_that_does_not_come_in_time_is_an_honest_503():
    async with waiting_gateway(0.2) as (gate, _, request):
        answer = await request
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "no_worker"
        assert answer.headers["retry-after"]
        assert gate.app.parts.services.admission.depth() == 0


async def test_once_a_worker_is_there_its_slot_is_waited_for_as_ever():
    go_on = asyncio.Event()

    async def slow(peer) -> None:
        await go_on.wait()
        await answers_well(peer)

    async with waiting_gateway(1.0, slow) as (gate, server, first), asyncio.TaskGroup() as tasks:
        second = tasks.create_task(gate.chat(stream=True))
        await gate.until(lambda: gate.app.parts.services.admission.depth("tiny") == 2)
        await gate.publish(worker_at(server.url, "late", slots=1))
        await asyncio.sleep(1.5)
        assert gate.in_flight == 1
        assert not first.done()
        assert not second.done()
        go_on.set()
        assert {(await first).status_code, (await second).status_code} == {200}
