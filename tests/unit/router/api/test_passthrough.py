"""Paths that generate nothing, handed to a worker as they are."""

from __future__ import annotations

import pytest

from router.api.passthrough import PATHS
from tests.support.gateway import gateway, refusal, worker_at
from tests.support.raw_server import raw_server
from workers.state import WorkerState


@pytest.mark.parametrize("path", PATHS)
async def test_body_and_answer_go_through(path):
    seen = []

    async def script(peer):
        seen.append(await peer.request())
        await peer.send(refusal(b"200 OK", {"tokens": [1, 2]}))

    async with raw_server(script) as server, gateway(worker_at(server.url, "a")) as gate:
        answer = await gate.client.post(path, json={"content": "x"})
        wrong = await gate.client.get(path)
    assert answer.json() == {"tokens": [1, 2]}
    assert answer.headers["x-specroute-worker"] == "a"
    assert seen[0].line == f"POST {path} HTTP/1.1".encode()
    assert seen[0].body == b'{"content":"x"}'
    assert wrong.status_code == 405


async def test_a_worker_that_fails_is_passed_over():
    async def dies(peer):
        await peer.request()
        peer.reset()

    async def answers(peer):
        await peer.request()
        await peer.send(refusal(b"200 OK", {}))

    async with (
        raw_server(dies) as bad,
        raw_server(answers) as good,
        gateway(worker_at(bad.url, "a"), worker_at(good.url, "b")) as gate,
    ):
        answer = await gate.client.post("/tokenize", json={"content": "x"})
        pinned = await gate.client.post("/tokenize", json={"model": "tiny@a"})
    assert answer.headers["x-specroute-worker"] == "b"
    assert pinned.status_code == 502


async def test_nobody_there_is_told():
    loading = worker_at("http://127.0.0.1:1", "a", state=WorkerState.LOADING)
    async with gateway(loading) as gate:
        answer = await gate.client.post("/tokenize", json={"content": "x"})
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "no_worker"
    assert answer.headers["retry-after"]


async def test_a_workers_refusal_is_translated():
    async def refuses(peer):
        await peer.request()
        error = {"error": {"code": 400, "message": "no", "type": "invalid_request_error"}}
        await peer.send(refusal(b"400 Bad Request", error))

    async with raw_server(refuses) as server, gateway(worker_at(server.url)) as gate:
        answer = await gate.client.post("/detokenize", json={"tokens": "x"})
    assert answer.status_code == 400
    assert answer.json()["error"] == {
        "message": "no",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_value",
    }
