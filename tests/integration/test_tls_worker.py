"""A server attached over https, under a private certificate authority."""

from __future__ import annotations

import asyncio

import pytest
import trustme

from tests.support.gateway import gateway, worker_at
from tests.support.simulated import simulator
from tests.support.supervised import Published, host
from workers.attached import Attached
from workers.scripted import Script
from workers.spec import WorkerSpec
from workers.state import WorkerState


@pytest.fixture
def certificate(tmp_path, monkeypatch):
    """uvicorn's options for a certificate of 127.0.0.1, whose authority this process trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    own = authority.issue_cert("127.0.0.1")
    own.private_key_and_cert_chain_pem.write_to_path(tmp_path / "own.pem")
    return {"ssl_certfile": str(tmp_path / "own.pem")}


async def _published(url: str, tmp_path) -> object:
    """The record an agent publishes of the server at `url` once it is well."""
    published = Published()
    spec = WorkerSpec("far", "tiny", "ar", url=url, slots=2, context=4096)
    worker = Attached(spec, host(tmp_path), published)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run(start=True))
        found = await published.reaches(WorkerState.READY)
        worker.stop()
    return found


async def test_an_https_worker_is_found_and_served_from(certificate, tmp_path):
    async with simulator(Script(), **certificate) as (_, url):
        record = await _published(url, tmp_path)
        assert (record.transport, record.url) == ("httpx", url)
        async with gateway(record) as gate:
            whole = await gate.chat()
            stream = await gate.chat(stream=True)
    assert whole.json()["choices"][0]["message"]["content"]
    assert stream.content.endswith(b"data: [DONE]\n\n")
    assert {answer.headers["x-specroute-worker"] for answer in (whole, stream)} == {"far"}


async def test_a_strangers_certificate_is_a_failed_worker(certificate, tmp_path, monkeypatch):
    async with simulator(Script(), **certificate) as (app, url):
        monkeypatch.delenv("SSL_CERT_FILE")
        async with gateway(worker_at(url, transport="httpx")) as gate:
            refused = await gate.chat()
    assert refused.status_code == 502
    assert refused.json()["error"]["code"] == "worker_failed"
    assert app.served == 0
