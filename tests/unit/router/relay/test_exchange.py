"""Patience by prompt length, whole short answers, and the slots a worker shows."""

from __future__ import annotations

import orjson
import pytest

from router.core import UpstreamFailed
from router.relay import Budgets, Exchanges
from router.upstream.transports import Upstreams
from tests.fakes.gateway import HandClock
from tests.support.gateway import refusal, worker_at
from tests.support.raw_server import raw_server


@pytest.fixture
async def exchanges():
    upstreams = Upstreams()
    yield Exchanges(upstreams, lambda record: f"key-of-{record.name}", Budgets(), HandClock())
    await upstreams.aclose()


def _says(answer: bytes):
    async def script(peer):
        await peer.request()
        await peer.send(answer)

    return script


def test_a_long_prompt_has_more_patience():
    budgets = Budgets(first_byte=10.0, prompt_tokens_per_second=100.0)
    assert budgets.until_first_byte(0) == 10.0
    assert budgets.until_first_byte(32_000) == 330.0


async def test_busy_slots_are_read_with_the_workers_key(exchanges):
    seen = []

    async def script(peer):
        seen.append(await peer.request())
        slots = [{"is_processing": True}, {"is_processing": False}, {}]
        await peer.send(refusal(b"200 OK", slots))

    async with raw_server(script) as server:
        assert await exchanges.busy_slots(worker_at(server.url, "a")) == 1
    assert seen[0].line == b"GET /slots HTTP/1.1"
    assert seen[0].headers[b"authorization"] == b"Bearer key-of-a"


@pytest.mark.parametrize(
    "answer",
    [
        refusal(b"200 OK", {"not": "a list"}),
        refusal(b"501 Not Implemented", {}),
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{",
    ],
)
async def test_a_worker_that_does_not_say_is_unknown(exchanges, answer):
    async with raw_server(_says(answer)) as server:
        assert await exchanges.busy_slots(worker_at(server.url)) is None


async def test_nobody_there_is_nobody_busy(exchanges):
    assert await exchanges.busy_slots(worker_at("http://127.0.0.1:1")) == 0


async def test_a_call_returns_the_whole_answer_or_the_refusal(exchanges):
    async with raw_server(_says(refusal(b"200 OK", {"a": 1}))) as server:
        reply = await exchanges.call(worker_at(server.url), "POST", "/tokenize", b"{}")
        assert orjson.loads(reply.body) == {"a": 1}
        assert reply.content_type == b"application/json"
    async with raw_server(_says(refusal(b"401 Unauthorized", {}))) as server:
        with pytest.raises(UpstreamFailed):  # our key was refused, not the client's
            await exchanges.call(worker_at(server.url), "POST", "/tokenize", b"{}")
