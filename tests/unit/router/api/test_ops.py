"""Figures and orders, for operators only."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from tests.support.gateway import ADMIN, answers_well, gateway, worker_at
from tests.support.raw_server import raw_server
from tests.support.waiting import until
from workers.logs import change_level, current_level
from workers.registry.base import Verb

WORKER = worker_at("http://127.0.0.1:1", "a")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/ops/summary"),
        ("GET", "/ops/workers"),
        ("GET", "/ops/classes"),
        ("GET", "/ops/decisions"),
        ("GET", "/ops/policy"),
        ("PUT", "/ops/policy"),
        ("GET", "/ops/logs"),
        ("PUT", "/ops/logs"),
        ("POST", "/ops/workers/a/drain"),
    ],
)
async def test_nobody_else_gets_in(method, path):
    async with gateway(WORKER) as gate:
        nobody = await gate.client.request(method, path)
        stranger = await gate.client.request(method, path, headers={"x-api-key": "guess"})
    assert nobody.status_code == stranger.status_code == 401
    assert nobody.json()["error"]["type"] == "authentication_error"


async def test_the_summary_has_what_the_dashboard_shows():
    async with gateway(WORKER) as gate:
        body = (await gate.client.get("/ops/summary", headers=ADMIN)).json()
        workers = (await gate.client.get("/ops/workers", headers=ADMIN)).json()["workers"]
        classes = (await gate.client.get("/ops/classes", headers=ADMIN)).json()
    assert body["workers"] == workers
    assert body["classes"] == classes["classes"]
    row = workers[0]
    assert row.keys() >= {"name", "model", "mode", "state", "slots", "inflight", "restarts", "url"}
    assert (row["name"], row["state"], row["slots"], row["inflight"]) == ("a", "ready", 2, 0)
    assert body["queue"] == {"tiny": 0}
    assert body["redis"] == "none"


@pytest.mark.parametrize("verb", [verb for verb in Verb if verb.for_operators])
async def test_an_order_reaches_whoever_runs_the_worker(verb):
    async with gateway(WORKER) as gate:
        orders = gate.registry.commands()
        hearing = asyncio.ensure_future(anext(orders))
        await asyncio.sleep(0)
        answer = await gate.client.post(f"/ops/workers/a/{verb.value}", headers=ADMIN)
        command = await asyncio.wait_for(hearing, 5)
        await orders.aclose()
    assert answer.json() == {"worker": "a", "verb": verb.value, "heard_by": 1}
    assert (command.verb, command.worker) == (verb, "a")
    assert command.nonce


async def test_orders_that_cannot_be_carried_out_are_told():
    async with gateway(WORKER) as gate:
        post = gate.client.post
        unheard = await post("/ops/workers/a/drain", headers=ADMIN)
        unknown = await post("/ops/workers/b/drain", headers=ADMIN)
        no_verb = await post("/ops/workers/a/explode", headers=ADMIN)
        not_for_people = await post("/ops/workers/a/probe", headers=ADMIN)
    assert unheard.status_code == 503
    assert unknown.json()["error"]["code"] == "worker_not_found"
    assert no_verb.status_code == not_for_people.status_code == 404


async def test_decisions_are_told_as_they_are_made():
    async with (
        raw_server(answers_well) as server,
        gateway(worker_at(server.url, "a")) as gate,
        gate.client.stream("GET", "/ops/decisions", headers=ADMIN) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.aiter_lines()
        assert (await anext(lines)).startswith(":")
        await gate.chat()
        line = ""
        while not line.startswith("data: "):
            line = await asyncio.wait_for(anext(lines), 5)
        row = orjson.loads(line.removeprefix("data: "))
        assert row["decision"]["worker"] == "a"
        gate.app.parts.services.closing.set()  # a closing gateway ends its viewers' streams
        async for _ in lines:
            pass


async def test_the_policy_can_be_changed():
    async with raw_server(answers_well) as server, gateway(worker_at(server.url, "a")) as gate:
        put = gate.client.put
        wanted = {"policy": "round_robin", "settings": {"switch_margin": 0.5}}
        changed = await put("/ops/policy", json=wanted, headers=ADMIN)
        assert changed.json()["policy"] == "round_robin"
        assert changed.json()["settings"]["switch_margin"] == 0.5
        answer = await gate.chat()
        for bad in (b"[]", b"{"):
            refused = await put("/ops/policy", content=bad, headers=ADMIN)
            assert refused.json()["error"]["code"] == "invalid_json"
        nobody = {"policy": "static", "settings": {"static_worker": "zzz"}}
        refused = await put("/ops/policy", json=nobody, headers=ADMIN)
        assert refused.json()["error"]["message"] == "no worker is named 'zzz'; there are: a"
        await until(lambda: gate.outcomes)
    assert answer.status_code == 200
    assert gate.outcomes[0].decision.policy == "round_robin"


async def test_the_log_level_can_be_changed_while_it_runs():
    before = current_level()
    async with gateway(WORKER) as gate:
        answer = await gate.client.put("/ops/logs", headers=ADMIN, json={"level": "debug"})
        shown = await gate.client.get("/ops/logs", headers=ADMIN)
        wrong = await gate.client.put("/ops/logs", headers=ADMIN, json={"level": "loud"})
    change_level(before)
    assert answer.json()["level"] == shown.json()["level"] == "debug"
    assert wrong.status_code == 400
