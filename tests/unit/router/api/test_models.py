"""The list of every name that `model` may hold."""

from __future__ import annotations

from router.access import KeyEntry, hash_key
from tests.support.gateway import gateway, worker_at

WORKER = worker_at("http://127.0.0.1:1", "a", aliases=("small",))


async def test_models_aliases_and_pins_are_listed():
    async with gateway(WORKER, models=(("big", ("gpt-4o",)),)) as gate:
        body = (await gate.client.get("/v1/models")).json()
    rows = {row["id"]: row["specroute"] for row in body["data"]}
    assert body["object"] == "list"
    assert rows.keys() == {"big", "gpt-4o", "tiny", "small", "tiny@a"}
    assert rows["small"] == {"kind": "alias", "model": "tiny"}
    assert rows["tiny@a"]["mode"] == "ar"
    assert all(row["object"] == "model" for row in body["data"])


async def test_one_model_can_be_asked_for():
    async with gateway(WORKER) as gate:
        assert (await gate.client.get("/v1/models/tiny")).json()["id"] == "tiny"
        assert (await gate.client.get("/v1/models/tiny@a")).json()["specroute"]["worker"] == "a"
        missing = await gate.client.get("/v1/models/org/none")
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"


async def test_a_key_sees_its_own_models():
    keys = (KeyEntry("k", hash_key("key"), models=frozenset({"big"})),)
    async with gateway(WORKER, models=(("big", ()),), keys=keys) as gate:
        assert (await gate.client.get("/v1/models")).status_code == 401
        answer = await gate.client.get("/v1/models", headers={"x-api-key": "key"})
        hidden = await gate.client.get("/v1/models/tiny", headers={"x-api-key": "key"})
    assert [row["id"] for row in answer.json()["data"]] == ["big"]
    assert hidden.status_code == 404
