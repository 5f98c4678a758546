"""From the socket to the dispatcher: methods, sizes, keys, limits, ids."""

from __future__ import annotations

import asyncio

import pytest

from router.access import KeyEntry, hash_key
from router.api.edge import request_id
from router.core import Status
from tests.support.gateway import answers_well, gateway, worker_at
from tests.support.raw_server import raw_server
from tests.support.waiting import until

KEY = KeyEntry("alice", hash_key("key-a"), requests_per_minute=2)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/messages"])
async def test_another_method_is_told_so(path):
    async with gateway() as gate:
        answer = await gate.client.get(path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert answer.json()["error"]["code"] == "method_not_allowed"
    assert answer.headers["x-request-id"]


async def test_a_large_body_is_refused_whether_it_says_so_or_not():
    async def pieces():
        for _ in range(20):
            yield b"x" * 100

    headers = {"content-type": "application/json"}
    async with gateway(max_body_bytes=1000) as gate:
        post = gate.client.post
        told = await post("/v1/chat/completions", content=b"x" * 1001, headers=headers)
        untold = await post("/v1/chat/completions", content=pieces(), headers=headers)
    for answer in (told, untold):
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "request_too_large"


async def test_a_body_in_pieces_is_put_together():
    async def pieces():
        for part in (b'{"model":"tiny","messa', b'ges":[{"role":"user",', b'"content":"x"}]}'):
            yield part
            await asyncio.sleep(0)

    headers = {"content-type": "application/json"}
    async with raw_server(answers_well) as server, gateway(worker_at(server.url)) as gate:
        answer = await gate.client.post("/v1/chat/completions", content=pieces(), headers=headers)
    assert answer.status_code == 200


async def test_keys_and_their_limits_are_enforced():
    async with (
        raw_server(answers_well) as server,
        gateway(worker_at(server.url), keys=(KEY,)) as gate,
    ):
        assert (await gate.chat()).status_code == 401
        headers = {"x-api-key": "key-a"}
        assert [(await gate.chat(headers=headers)).status_code for _ in range(2)] == [200, 200]
        limited = await gate.chat(headers=headers)
        assert limited.status_code == 429
        assert limited.json()["error"]["code"] == "rate_limit_exceeded"
        assert int(limited.headers["retry-after"]) >= 1
        await until(lambda: len(gate.outcomes) == 4)
    assert [o.status for o in gate.outcomes] == [
        Status.CLIENT_ERROR,
        Status.OK,
        Status.OK,
        Status.SHED,
    ]
    assert gate.outcomes[1].key_id == "alice"
    assert "key-a" not in repr(gate.outcomes)


async def test_the_callers_id_comes_back():
    async with raw_server(answers_well) as server, gateway(worker_at(server.url)) as gate:
        headers = {"x-request-id": "mine-1"}
        for stream in (True, False):
            answer = await gate.chat(headers=headers, stream=stream)
            assert answer.headers["x-request-id"] == "mine-1"
        refused = await gate.chat(headers=headers, messages=[])
        assert refused.headers["x-request-id"] == "mine-1"


@pytest.mark.parametrize("given", [b"", b"x" * 200, b"a\x01b", "é".encode()])
def test_an_unusable_id_is_replaced(given):
    made = request_id({b"x-request-id": given})
    assert len(made) == 32
    assert made != request_id({})


async def test_a_client_that_leaves_before_its_body_is_complete_is_nobody():
    async with gateway() as gate:
        host, port = gate.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
            b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{"
        )
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        await asyncio.sleep(0.05)
        assert (await gate.client.get("/health")).status_code == 200
        assert gate.outcomes == []
