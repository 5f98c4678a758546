"""Alive, ready, metrics, and the decision without the generation."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from router.access import KeyEntry, hash_key
from tests.support.gateway import answers_well, gateway, worker_at
from tests.support.raw_server import raw_server
from tests.support.waiting import until
from workers.state import WorkerState


def _figures(text: str) -> dict[tuple[str, str], float]:
    """Every sample of an exposition by name and worker label."""
    return {
        (sample.name, sample.labels.get("worker", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


HINT = {"messages": [{"role": "user", "content": "Count from 1 to 20."}]}


async def test_health_says_alive_whatever_else():
    async with gateway() as gate:
        answer = await gate.client.get("/health")
        assert answer.json() == {"status": "ok"}
        assert (await gate.client.head("/health")).status_code == 200
        assert (await gate.client.post("/health")).status_code == 405


async def test_ready_needs_a_worker_that_serves():
    async with gateway() as gate:
        empty = await gate.client.get("/ready")
        await gate.publish(worker_at("http://127.0.0.1:1", "a", state=WorkerState.LOADING))
        loading = await gate.client.get("/ready")
        await gate.publish(worker_at("http://127.0.0.1:1", "b"))
        ready = await gate.client.get("/ready")
    assert empty.status_code == loading.status_code == 503
    assert "a loading" in loading.json()["error"]["message"]
    assert ready.status_code == 200
    assert ready.json()["workers"] == {"serving": 1, "known": 2}
    assert ready.json()["redis"] == "none"


async def test_without_redis_it_serves_and_says_so():
    async with (
        raw_server(answers_well) as server,
        gateway(worker_at(server.url), redis_url="redis://127.0.0.1:1") as gate,
    ):
        gate.app.parts.services.connectivity.reachable = False
        ready = await gate.client.get("/ready")
        answer = await gate.chat()
        metrics = _figures((await gate.client.get("/metrics")).text)
    assert ready.status_code == answer.status_code == 200
    assert ready.json()["reason"] == "redis unreachable, serving on local state"
    assert metrics["specroute_redis_up", ""] == 0


async def test_metrics_count_what_was_served():
    async with raw_server(answers_well) as server, gateway(worker_at(server.url, "a")) as gate:
        await gate.chat(headers={"x-specroute-class": "prose"})
        await until(lambda: gate.outcomes)
        figures = _figures((await gate.client.get("/metrics")).text)
    assert figures["specroute_generation_tokens_total", ""] == 3
    assert figures["specroute_draft_accepted_tokens_total", ""] == 1
    assert figures["specroute_worker_inflight", "a"] == 0


async def test_route_tells_the_decision_and_generates_nothing():
    async with raw_server(answers_well) as server:
        records = (
            worker_at(server.url, "a"),
            worker_at(server.url, "b", state=WorkerState.LOADING),
        )
        async with gateway(*records) as gate:
            answer = (await gate.client.post("/route", json=HINT)).json()
        assert server.peers == []
    expected = {"class", "kind", "probabilities", "features", "candidates", "chosen", "reason"}
    assert answer.keys() >= expected | {"propensity"}
    assert answer["chosen"] == "a"
    assert sum(answer["probabilities"].values()) == pytest.approx(1.0)
    rows = {row["worker"]: row for row in answer["candidates"]}
    assert rows["a"]["excluded_because"] is None
    assert rows["a"]["parts"].keys() == {"queue", "prefill", "decode", "switch", "swap"}
    assert rows["a"]["predicted_ms"] > 0
    assert rows["b"]["excluded_because"]


async def test_route_refuses_as_the_request_itself_would_be():
    async with gateway() as gate:
        assert (await gate.client.get("/route")).status_code == 405
        assert (await gate.client.post("/route", json={"model": "x"})).status_code == 400
        answer = await gate.client.post("/route", json=HINT | {"model": "x"})
    assert answer.json()["error"]["code"] == "model_not_found"


async def test_with_keys_metrics_and_route_need_one():
    keys = (KeyEntry("a", hash_key("key-a")),)
    async with gateway(worker_at("http://127.0.0.1:1"), keys=keys) as gate:
        for method, path in (("GET", "/metrics"), ("POST", "/route")):
            assert (await gate.client.request(method, path, json=HINT)).status_code == 401
            headers = {"authorization": "Bearer key-a"}
            answer = await gate.client.request(method, path, json=HINT, headers=headers)
            assert answer.status_code == 200
        assert (await gate.client.get("/health")).status_code == 200
