"""The first moments of a server: alive at once, everything else as soon as there is something."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys

import httpx

from router.app.serving import Opening
from router.settings import Settings
from tests.support.waiting import until
from workers.logs import LineWriter


async def _lifespan(opening: Opening, messages: asyncio.Queue, said: list[str]) -> None:
    async def send(message: dict) -> None:
        said.append(message["type"])

    await opening({"type": "lifespan"}, messages.get, send)


async def test_alive_before_there_is_an_application_and_others_wait_for_it():
    writer = LineWriter(io.StringIO())
    opening = Opening(Settings(models=(("tiny", ()),)), writer)
    messages: asyncio.Queue = asyncio.Queue()
    said: list[str] = []
    transport = httpx.ASGITransport(opening)
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        asyncio.TaskGroup() as group,
    ):
        assert (await client.get("/health")).json() == {"status": "ok"}
        early = group.create_task(client.get("/v1/models"))
        await asyncio.sleep(0)
        assert opening.app is None
        assert not early.done()
        life = group.create_task(_lifespan(opening, messages, said))
        await messages.put({"type": "lifespan.startup"})
        opening.listening.set()
        await until(lambda: opening.app is not None)
        assert (await early).json()["data"][0]["id"] == "tiny"
        assert (await client.get("/health")).json() == {"status": "ok"}
        await messages.put({"type": "lifespan.shutdown"})
        await life
    writer.close()
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_what_cannot_be_built_ends_the_server_with_its_reason():
    code = (
        "from router.app import run_gateway; from router.settings import Settings; "
        "run_gateway(Settings(policy='unheard', port=0))"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "ValueError: no policy named" in done.stderr
