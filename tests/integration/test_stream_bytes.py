"""Streams through the whole gateway, byte for byte, however the worker's bytes are cut."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest

from tests.support.gateway import ANSWER, DONE, delta, event, framed, gateway, worker_at
from tests.support.gateway import STREAM_HEAD as HEAD
from tests.support.http11_driver import split
from tests.support.raw_server import raw_server
from tests.support.simulated import simulator
from workers.scripted import Script
from workers.state import WorkerState

if TYPE_CHECKING:
    from tests.support.gateway import RunningGateway
    from tests.support.raw_server import Peer

pytestmark = pytest.mark.slow

ROLE = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]})
USAGE = event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
PIECES = (
    delta("añб世😀"),
    delta("", note='\\u0041 " \\ \n'),
    delta("x" * 70_000),
    b": a comment\n\n",
    b": a comment within an event\ndata: {}\n\n",
    b"event: of_another_kind\ndata: what\n\n",
    b"id: 7\nretry: 10\ndata: two\ndata: lines\n\n",
    b'data:{"choices":[{"index":0,"delta":{"content":"no space"}}]}\n\n',
    b"unknown: field\n\n",
    event({"choices": [{"index": 0, "delta": {"reasoning_content": "мысль"}}]}),
    event({"prompt_progress": {"total": 9}, "choices": [{"index": 0, "delta": {}}]}),
)


def _stream(chance: random.Random) -> bytes:
    """A whole stream of some of the pieces, with its end."""
    middle = [chance.choice(PIECES) for _ in range(chance.randrange(1, 12))]
    return b"".join([ROLE, *middle, *ANSWER, USAGE, DONE])


def _cuts(chance: random.Random, size: int) -> list[int]:
    kind = chance.randrange(3)
    if kind == 0 and size < 3000:
        return list(range(size))  # byte by byte
    return [chance.randrange(size) for _ in range(chance.randrange(40 if kind else 3))]


async def _sends_what_is_wanted(peer: Peer) -> None:
    """A worker that streams the bytes that the prompt's seed stands for, cut as it says."""
    request = await peer.request()
    seed = int(orjson.loads(request.body)["messages"][0]["content"])
    chance = random.Random(seed)
    data = _stream(chance)
    parts = [part for part in split(data, _cuts(chance, len(data))) if part]
    await peer.send(HEAD, *map(framed, parts), b"0\r\n\r\n")


async def _streamed(gate: RunningGateway, seed: int, **fields) -> bytes:
    answer = await gate.chat(str(seed), stream=True, **fields)
    assert answer.status_code == 200
    return answer.content


@pytest.mark.parametrize("wire", [True, False])
async def test_every_byte_arrives_whatever_the_split(wire):
    asked = {"stream_options": {"include_usage": True}}
    async with (
        raw_server(_sends_what_is_wanted) as server,
        gateway(worker_at(server.url), wire=wire) as gate,
    ):
        for seed in range(80):
            assert await _streamed(gate, seed, **asked) == _stream(random.Random(seed)), seed


async def test_only_the_usage_that_nobody_asked_for_is_taken_out_whatever_the_split():
    async with (
        raw_server(_sends_what_is_wanted) as server,
        gateway(worker_at(server.url, engine="external")) as gate,
    ):
        for seed in range(80):
            wanted = _stream(random.Random(seed)).replace(USAGE, b"")
            assert await _streamed(gate, seed) == wanted, seed


async def test_an_event_of_megabytes_arrives_whole():
    giant = delta("😀" * 1_000_000)

    async def answers(peer: Peer) -> None:
        await peer.request()
        parts = split(giant, [n * 9_973 for n in range(400)])
        await peer.send(HEAD, framed(ROLE), *[framed(p) for p in parts if p])
        await peer.send(*map(framed, (*ANSWER, DONE)), b"0\r\n\r\n")

    async with raw_server(answers) as server, gateway(worker_at(server.url)) as gate:
        answer = await gate.chat(stream=True)
    assert answer.content == b"".join([ROLE, giant, *ANSWER, DONE])


async def test_a_stream_without_its_role_is_given_one():
    roleless = (delta("one "), *ANSWER[1:], DONE)

    async def answers(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD, *map(framed, roleless), b"0\r\n\r\n")

    async with raw_server(answers) as server, gateway(worker_at(server.url)) as gate:
        answer = await gate.chat(stream=True)
    first, rest = answer.content.split(b"\n\n", 1)
    assert orjson.loads(first[6:])["choices"][0]["delta"] == {"role": "assistant", "content": None}
    assert rest == b"".join(roleless)


async def test_a_choice_that_a_worker_leaves_out_is_told():
    """Builds before b11549 end a stream of several choices after the first."""

    async def answers(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD, *map(framed, (ROLE, *ANSWER, DONE)), b"0\r\n\r\n")

    async with raw_server(answers) as server, gateway(worker_at(server.url)) as gate:
        answer = await gate.chat(stream=True, n=2)
    assert b"[DONE]" not in answer.content
    error = orjson.loads(answer.content.rpartition(b"data: ")[2])["error"]
    assert error["code"] == "worker_failed"


@pytest.mark.slow
async def test_waiting_streams_are_kept_alive_after_ten_seconds_and_not_before():
    """For a slot, for the prompt to be read, for the model: comments, then the whole answer."""
    async with (
        simulator(Script(slots=1, prefill_ms=600.0)) as (_, first),
        simulator(Script(slots=2, prefill_ms=6_000.0)) as (_, second),
        simulator(Script()) as (_, third),
    ):
        records = [worker_at(first, "queued", slots=1), worker_at(second, "reading", slots=2)]
        loading = worker_at(third, "loading", model="late", state=WorkerState.LOADING)
        async with (
            gateway(*records, loading, wait_for_worker_s=60.0) as gate,
            asyncio.TaskGroup() as group,
        ):
            ahead = group.create_task(gate.chat("word " * 23, model="tiny@queued"))
            await gate.until(lambda: gate.in_flight == 1)
            names = ("tiny@queued", "tiny@reading", "late")
            waits = [group.create_task(_kept_alive(gate, name)) for name in names]
            await asyncio.sleep(11.0)
            await gate.publish(replace(loading, state=WorkerState.READY))
        for wait in waits:
            opened, content = wait.result()
            assert opened >= 9.5
            assert content.startswith(b": ")
            assert content.endswith(DONE)
        assert ahead.result().status_code == 200


async def _kept_alive(gate: RunningGateway, model: str) -> tuple[float, bytes]:
    """Seconds until the stream was opened, and all that came."""
    loop = asyncio.get_running_loop()
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    asked = loop.time()
    path = "/v1/chat/completions"
    async with gate.client.stream("POST", path, json={**body, "stream": True}) as answer:
        opened = loop.time() - asked
        return opened, await answer.aread()
