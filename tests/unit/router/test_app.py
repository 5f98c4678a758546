"""The composition: everything opens, serves, and closes; what is heavy waits."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from dataclasses import replace

import httpx
import pytest

from router.app import build, create_app
from router.settings import Settings
from tests.fakes.gateway import record
from tests.support.gateway import SECRET, answers_well, gateway, worker_at
from tests.support.gateway_command import gateway_command
from tests.support.raw_server import raw_server
from tests.support.waiting import until
from workers.clock import SystemClock
from workers.registry import MemoryRegistry, open_registry


async def test_background_tasks_end_with_the_application():
    before = asyncio.all_tasks()
    async with gateway(worker_at("http://127.0.0.1:1")):
        assert len(asyncio.all_tasks()) > len(before)
    await until(lambda: asyncio.all_tasks() == before)


async def test_a_failing_background_task_is_begun_again_and_harms_nobody(monkeypatch):
    monkeypatch.setattr("router.app.application.RESTART_S", 0.01)
    began = []

    async def fails() -> None:
        began.append(1)
        raise RuntimeError("on purpose")

    app = create_app(Settings(cluster_secret=SECRET), registry=MemoryRegistry(SystemClock()))
    app.parts = replace(app.parts, background=(*app.parts.background, fails))
    messages: asyncio.Queue = asyncio.Queue()
    said: list[str] = []

    async def send(message: dict) -> None:
        said.append(message["type"])

    await messages.put({"type": "lifespan.startup"})
    async with asyncio.TaskGroup() as group:
        group.create_task(app({"type": "lifespan"}, messages.get, send))
        await until(lambda: len(began) > 2)
        await messages.put({"type": "lifespan.shutdown"})
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_outcomes_that_wait_at_the_end_are_still_recorded(tmp_path):
    async with (
        raw_server(answers_well) as server,
        gateway(worker_at(server.url), state_dir=tmp_path) as gate,
    ):
        for _ in range(5):
            await gate.chat()
    assert len((tmp_path / "decisions.jsonl").read_bytes().splitlines()) == 5


async def test_the_application_is_asgi_without_a_server():
    registry = MemoryRegistry(SystemClock())
    app = create_app(Settings(cluster_secret=SECRET), registry=registry)
    app.parts.services.fleet.update([record()])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get("/health")).json() == {"status": "ok"}
        assert (await client.get("/ready")).status_code == 200
        assert (await client.get("/v1/models")).json()["data"][0]["id"] == "tiny"


def test_an_unknown_policy_is_said_at_once():
    with pytest.raises(ValueError, match="no policy named"):
        build(Settings(policy="unheard"))


def test_health_needs_no_web_framework():
    """The framework is imported after the start, in the background."""
    code = "import sys, router.app; print('fastapi' in sys.modules, 'litellm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


async def _answers(client: httpx.AsyncClient, path: str) -> None:
    """Wait until the page is there."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if (await client.get(path)).status_code == 200:
                    return
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_the_command_serves_what_redis_tells_and_stops_when_told(tmp_path, redis_url):
    with gateway_command(tmp_path, redis_url) as (process, url):
        async with raw_server(answers_well) as server, httpx.AsyncClient(base_url=url) as client:
            await _answers(client, "/health")
            assert (await client.get("/ready")).status_code == 503
            secret = (tmp_path / "state" / "cluster-secret").read_text().strip()
            registry = open_registry(redis_url, secret, SystemClock())
            await registry.publish(worker_at(server.url, "plain"))
            await _answers(client, "/ready")
            body = {"messages": [{"role": "user", "content": "hi"}]}
            answer = await client.post("/v1/chat/completions", json=body)
            assert answer.json()["choices"][0]["message"]["content"] == "one two three"
            await registry.aclose()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 20) in (0, -signal.SIGTERM)
        text = await asyncio.to_thread(process.stdout.read)
    assert f"serving {url}" in text
    assert "Traceback" not in text


@pytest.mark.slow
async def test_on_a_public_address_the_first_key_is_made(tmp_path, redis_url):
    environment = {"SPECROUTE_SERVER__HOST": "0.0.0.0"}  # noqa: S104
    with gateway_command(tmp_path, redis_url, **environment) as (_, url):
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            await _answers(client, "/health")
            assert (await client.get("/v1/models")).status_code == 401
            key = (tmp_path / "state" / "api-key").read_text().strip()
            headers = {"authorization": f"Bearer {key}"}
            assert (await client.get("/v1/models", headers=headers)).status_code == 200
    assert key not in (tmp_path / "state" / "keys.json").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("redis: {url: embedded}\n", "redis.url"),
        ("redis: {url: embedded}\nservre: {}\n", "server"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(tmp_path, text, said):
    path = tmp_path / "c.yaml"
    models = "models: [{name: tiny, target: t.gguf}]\nworkers: [{name: plain, model: tiny}]\n"
    path.write_text(text + models)
    argv = ["gateway", "-c", str(path), "--state-dir", str(tmp_path / "state")]
    done = subprocess.run(
        [sys.executable, "-m", "router", *argv], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


async def test_a_gateway_without_redis_serves_on_what_it_knows(redis_url):
    """The registry goes away under a running gateway: nothing changes for its clients."""
    async with raw_server(answers_well) as server:
        registry = open_registry("redis://127.0.0.1:1", SECRET, SystemClock())
        settings = {"redis_url": "redis://127.0.0.1:1"}
        async with gateway(registry=registry, **settings) as gate:
            gate.fleet.update([replace(worker_at(server.url), name="plain")])
            assert (await gate.chat()).status_code == 200
            ready = (await gate.client.get("/ready")).json()
    assert ready["redis"] == "down"
    assert ready["reason"] == "redis unreachable, serving on local state"
