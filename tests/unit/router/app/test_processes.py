"""Several serving processes: one address, restarts, and nobody left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.support.gateway_command import gateway_command
from tests.support.waiting import until

if TYPE_CHECKING:
    import subprocess
    from contextlib import AbstractContextManager

# Two processes import everything at once: a busy machine has needed more than 60 s for it.
SERVING_S = 200


def _two(folder: Path) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    """Two serving processes behind one port, without Redis."""
    return gateway_command(folder, "redis://127.0.0.1:1", SPECROUTE_SERVER__PROCESSES="2")


def _children(pid: int) -> set[int]:
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return {int(one) for one in text.split()}
    return set()


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def _serves(url: str) -> None:
    async with asyncio.timeout(SERVING_S), httpx.AsyncClient(base_url=url) as client:
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if (await client.get("/v1/models")).status_code == 200:
                    return
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_one_that_dies_is_started_again_and_all_end_together(tmp_path):
    with _two(tmp_path) as (parent, url):
        await _serves(url)
        before = _children(parent.pid)
        assert len(before) == 2
        lost = min(before)
        os.kill(lost, signal.SIGKILL)
        await until(
            lambda: len(_children(parent.pid)) == 2 and lost not in _children(parent.pid), 60
        )
        await _serves(url)
        family = _children(parent.pid)
        await asyncio.sleep(1.0)  # until the new one has its handlers
        parent.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(parent.wait, 30) == 0
        assert not any(map(_lives, family))
        text = await asyncio.to_thread(parent.stdout.read)
    assert f"serving {url}" in text
    assert "Traceback" not in text


async def _once(url: str, method: str, path: str, **more) -> httpx.Response:
    """One request on a connection of its own: any of the processes may get it."""
    async with httpx.AsyncClient(base_url=url, timeout=60.0) as client:
        return await client.request(method, path, **more)


def _requests(page: httpx.Response) -> float:
    rows = [row for row in page.text.splitlines() if row.startswith("specroute_requests_total{")]
    return sum(float(row.rpartition(" ")[2]) for row in rows)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_whoever_is_scraped_tells_of_all(tmp_path):
    with _two(tmp_path) as (parent, url):
        await _serves(url)
        for _ in range(20):
            body = {"model": "unheard", "messages": [{"role": "user", "content": "x"}]}
            assert (await _once(url, "POST", "/v1/chat/completions", json=body)).status_code == 404
        async with asyncio.timeout(60):  # each leaves its page once a second
            while True:
                told = {_requests(await _once(url, "GET", "/metrics")) for _ in range(10)}
                if told == {20.0}:
                    break
                await asyncio.sleep(0.5)
        parent.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(parent.wait, 30) == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_no_orphan_when_the_parent_is_killed(tmp_path):
    with _two(tmp_path) as (parent, url):
        await _serves(url)
        family = _children(parent.pid)
        assert len(family) == 2
        parent.kill()
        await until(lambda: not any(map(_lives, family)), 20)
