"""`specroute report` and `specroute dashboard` as an operator types them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import simulated_day
from workers.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "secret-of-the-tests"  # noqa: S105


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(simulated_day.CONFIG)
    return tmp_path


def specroute(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SPECROUTE_")}
    return subprocess.run(
        [sys.executable, "-m", "router", *arguments, "--state-dir", str(folder)],
        env=clean | {"SPECROUTE_AUTH__CLUSTER_SECRET": SECRET} | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "ru"])
def test_a_report_of_a_day(folder: Path, redis_url: str, monkeypatch, language: str) -> None:
    monkeypatch.setattr(simulated_day, "DISTINCT", 200)
    asyncio.run(simulated_day.write_day(redis_url, SECRET, SystemClock().wall()))
    output = folder / "day.html"
    done = specroute(
        folder, "report", "--since", "24h", "-o", str(output), "--language", language,
        SPECROUTE_REDIS__URL=redis_url,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    html = output.read_text()
    assert f'lang="{language}"' in html
    assert html.count("<svg") > 10
    assert 'data-mode="dflash2-margin"' in html
    for outside in ("<script", "<link", "http://", "https://"):
        assert outside not in html


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("report", "--since", "yesterday"), 2, "90m, 24h or 7d"),
        (("report", "-c", "missing.yaml"), 2, "no config at missing.yaml"),
        (("dashboard", "-c", "missing.yaml"), 2, "missing.yaml"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, arguments, code: int, says: str) -> None:
    done = specroute(folder, *arguments)
    assert done.returncode == code
    assert says in done.stderr


def test_a_port_that_is_taken_is_told_before_an_address_is(folder: Path) -> None:
    away = {"SPECROUTE_REDIS__URL": "redis://127.0.0.1:9"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = ("dashboard", "-c", str(folder / "tiny.yaml"), "--port", port)
        done = specroute(folder, *arguments, **away)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: port {port} on 127.0.0.1 cannot be used (Address already in use); "
        "stop what listens there or choose another with --port\n"
    )


def test_without_an_up_there_is_no_embedded_redis_to_read(folder: Path) -> None:
    done = specroute(folder, "dashboard", "-c", str(folder / "tiny.yaml"))
    assert done.returncode == 2
    assert "no `specroute up` has used" in done.stderr


def test_a_redis_that_is_away_is_a_failure_and_no_empty_report(folder: Path) -> None:
    output = folder / "day.html"
    away = {"SPECROUTE_REDIS__URL": "redis://127.0.0.1:9"}
    done = specroute(folder, "report", "-o", str(output), **away)
    assert done.returncode == 1
    assert "Redis does not answer" in done.stderr
    assert not output.exists()
