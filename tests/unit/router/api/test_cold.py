"""What the framework serves, and what it says where nobody serves anything."""

from __future__ import annotations

import pytest

from router.api import ops
from tests.support.gateway import ADMIN, gateway


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/v1/unheard", 404, "not_found"),
        ("POST", "/v1/models", 405, "method_not_allowed"),
        ("DELETE", "/ops/policy", 405, "method_not_allowed"),
    ],
)
async def test_every_refusal_has_the_contracts_shape(method, path, status, code):
    async with gateway() as gate:
        answer = await gate.client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"].keys() == {"message", "type", "param", "code"}
    assert answer.json()["error"]["code"] == code
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize("wire", [True, False])
async def test_a_mistake_of_ours_has_the_contracts_shape_too(monkeypatch, wire):
    def broken(services):
        raise RuntimeError("a secret of the house")

    monkeypatch.setattr(ops, "_workers", broken)
    async with gateway(wire=wire) as gate:
        answer = await gate.client.get("/ops/workers", headers=ADMIN)
        after = await gate.client.get("/ops/classes", headers=ADMIN)
    assert answer.status_code == 500
    assert answer.json()["error"].keys() == {"message", "type", "param", "code"}
    assert answer.json()["error"]["type"] == "server_error"
    assert "secret" not in answer.text
    assert after.status_code == 200


async def test_the_dashboard_is_elsewhere():
    async with gateway(dashboard_url="http://127.0.0.1:8081") as gate:
        answer = await gate.client.get("/dashboard")
    assert answer.status_code == 307
    assert answer.headers["location"] == "http://127.0.0.1:8081"


async def test_without_a_dashboard_that_is_told():
    async with gateway() as gate:
        assert (await gate.client.get("/dashboard")).status_code == 501


async def test_the_documentation_names_the_paths():
    async with gateway() as gate:
        paths = (await gate.client.get("/openapi.json")).json()["paths"]
    assert {"/v1/models", "/ops/summary", "/ops/workers/{name}/{verb}"} <= paths.keys()
