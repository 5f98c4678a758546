"""DNS for real; EndpointSlices against an API server's stand-in with its own authority."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import orjson
import pytest
import trustme
import uvicorn

from tests.support.waiting import until
from workers import addresses
from workers.addresses import EndpointSlices, NameUnknown, by_dns

HOST = "llama.models.svc"


async def test_names_are_looked_up_for_real():
    assert "127.0.0.1" in await by_dns("localhost", 80)
    impossible = "x" * 64  # longer than a label may be, so that no server is asked
    with pytest.raises(NameUnknown, match=impossible):
        await by_dns(impossible, 80)


@dataclass
class ApiServer:
    """Says what the test set; keeps what it was asked."""

    items: Any = field(default_factory=list)
    status: int = 200
    asked: list[tuple[str, dict[str, list[str]], str]] = field(default_factory=list)

    async def __call__(self, scope, receive, send):
        assert scope["type"] == "http"
        headers = dict(scope["headers"])
        query = parse_qs(scope["query_string"].decode())
        self.asked.append((scope["path"], query, headers[b"authorization"].decode()))
        body = orjson.dumps({"kind": "EndpointSliceList", "items": self.items})
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def cluster(folder):
    """An API server, and the lookup of a pod whose account it knows."""
    authority, app = trustme.CA(), ApiServer()
    authority.cert_pem.write_to_path(folder / "ca.crt")
    (folder / "token").write_text("token-1\n")
    (folder / "namespace").write_text("ours")
    own = authority.issue_cert("127.0.0.1")
    own.private_key_and_cert_chain_pem.write_to_path(folder / "own.pem")
    config = uvicorn.Config(
        app, port=0, lifespan="off", log_config=None, ssl_certfile=str(folder / "own.pem")
    )
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server._serve())
        await until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield app, EndpointSlices(f"https://127.0.0.1:{port}", folder)
        server.should_exit = True


def piece(*endpoints, family="IPv4"):
    return {"addressType": family, "ports": [{"port": 8080}], "endpoints": list(endpoints)}


def endpoint(address, **conditions):
    return {"addresses": [address], "conditions": conditions}


async def test_ready_addresses_of_all_slices_are_found_as_the_pods_account(tmp_path):
    async with cluster(tmp_path) as (api, look_up):
        api.items = [
            piece(endpoint("10.0.0.1", ready=True), endpoint("10.0.0.2", ready=False)),
            piece(endpoint("10.0.0.3"), {"addresses": ["10.0.0.4"]}),
            {"addressType": "IPv4", "endpoints": None},
        ]
        assert await look_up(HOST, 8080) == {"10.0.0.1", "10.0.0.3", "10.0.0.4"}
        ((path, query, authorization),) = api.asked
    assert path == "/apis/discovery.k8s.io/v1/namespaces/models/endpointslices"
    assert query["labelSelector"] == ["kubernetes.io/service-name=llama"]
    assert authorization == "Bearer token-1"


async def test_a_pod_that_is_told_to_go_is_left_out_while_it_still_serves(tmp_path):
    async with cluster(tmp_path) as (api, look_up):
        going = endpoint("10.0.0.1", ready=True, serving=True, terminating=True)
        api.items = [piece(going, endpoint("10.0.0.2", ready=True))]
        assert await look_up(HOST, 8080) == {"10.0.0.2"}


async def test_a_pod_with_two_families_is_one_worker(tmp_path):
    async with cluster(tmp_path) as (api, look_up):
        six = piece(endpoint("fd00::1"), family="IPv6")
        api.items = [six, piece(endpoint("10.0.0.1"))]
        assert await look_up(HOST, 8080) == {"10.0.0.1"}
        api.items = [six]
        assert await look_up(HOST, 8080) == {"fd00::1"}
        api.items = []
        assert await look_up(HOST, 8080) == frozenset()


async def test_a_token_that_is_replaced_is_used_and_a_bare_name_is_of_our_namespace(tmp_path):
    async with cluster(tmp_path) as (api, look_up):
        await look_up("llama", 8080)
        (tmp_path / "token").write_text("token-2")
        await look_up("llama", 8080)
        assert [authorization for _, _, authorization in api.asked] == [
            "Bearer token-1",
            "Bearer token-2",
        ]
        assert {path.split("/")[5] for path, _, _ in api.asked} == {"ours"}


async def test_refusals_and_nonsense_change_nothing_but_are_said(tmp_path):
    async with cluster(tmp_path) as (api, look_up):
        api.status = 403
        with pytest.raises(NameUnknown, match="403"):
            await look_up(HOST, 8080)
        api.status, api.items = 200, [{"endpoints": []}]
        with pytest.raises(NameUnknown, match="addressType"):
            await look_up(HOST, 8080)
        trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
        with pytest.raises(NameUnknown, match="certificate"):
            await look_up(HOST, 8080)
        (tmp_path / "token").unlink()
        with pytest.raises(NameUnknown, match="service account"):
            await look_up(HOST, 8080)


def test_a_pod_is_told_where_its_api_server_is(tmp_path, monkeypatch):
    monkeypatch.setattr(addresses, "ACCOUNT", tmp_path)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ValueError, match="automountServiceAccountToken"):
        EndpointSlices.of_this_pod(environ)
    (tmp_path / "token").write_text("t")
    assert EndpointSlices.of_this_pod(environ).url == "https://[fd00::1]:443"
    with pytest.raises(ValueError, match="no pod"):
        EndpointSlices.of_this_pod({})
