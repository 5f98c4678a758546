"""What the agent's command refuses, and in which words. Running it is tested in integration."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from tests.support.waiting import until
from workers.__main__ import Reloader, agent

CONFIG = """\
redis: {url: redis://127.0.0.1:1}
auth: {cluster_secret: s}
models: [{name: m, target: t.gguf}]
workers: [{name: a, model: m}, {name: b, model: m}]
"""


def invoke(tmp_path, text, *arguments):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    state = str(tmp_path / "state")
    return CliRunner().invoke(agent, ["-c", str(path), "--state-dir", state, *arguments])


@pytest.mark.parametrize(
    ("old", "new", "arguments", "words"),
    [
        ("", "", ["--worker", "z"], "no worker z in the file; has: a, b"),
        ("cluster_secret: s", "", [], "auth.cluster_secret is missing"),
        ("redis://127.0.0.1:1", "embedded", [], "which only `specroute up` starts"),
        ("name: b", "nam: b", [], "did you mean `name`?"),
    ],
)
def test_what_it_cannot_do_is_wrong_usage(tmp_path, monkeypatch, old, new, arguments, words):
    monkeypatch.delenv("SPECROUTE_AUTH__CLUSTER_SECRET", raising=False)
    done = invoke(tmp_path, CONFIG.replace(old, new), *arguments)
    assert done.exit_code == 2
    assert words in done.output


def test_help_has_an_example():
    done = CliRunner().invoke(agent, ["--help"])
    assert done.exit_code == 0
    assert "specroute agent -c specroute.yaml" in done.output


def test_it_is_lean():
    code = "import sys, workers.__main__; print([m for m in sys.argv[1:] if m in sys.modules])"
    heavy = ["fastapi", "sklearn", "litellm", "uvicorn", "numpy", "xllamacpp"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_its_log_has_the_configured_format(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG + "telemetry: {log_format: json}\n")
    argv = [sys.executable, "-m", "workers", "-c", str(path), "--state-dir", str(tmp_path / "s")]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as running:
        line = json.loads(running.stderr.readline())
        running.terminate()
    assert line["event"] in ("worker_state", "registry_unavailable")
    assert running.returncode == 0


class _Agent:
    """Takes note of what it is told to run."""

    def __init__(self) -> None:
        self.told: list[list[str]] = []
        self.done = asyncio.Event()
        self.done.set()

    async def reload(self, specs) -> None:
        self.told.append([spec.name for spec in specs])
        await self.done.wait()


@asynccontextmanager
async def following(path, monkeypatch):
    """A Reloader that looks often, and what it tells."""
    monkeypatch.setattr("workers.__main__._LOOK_S", 0.02)
    reloader, stand_in = Reloader(path, {}, ()), _Agent()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(reloader.run(stand_in))
        yield reloader, stand_in
        running.cancel()


async def test_a_changed_file_is_read_again_and_a_broken_one_refused(tmp_path, monkeypatch):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    async with following(path, monkeypatch) as (reloader, stand_in):
        reloader.told.set()  # as SIGHUP does, with nothing changed
        await until(lambda: stand_in.told == [["a", "b"]])
        path.write_text(CONFIG.replace("name: b", "nam: b"))
        await until(lambda: reloader._content == path.read_bytes())
        path.unlink()
        path.write_text(CONFIG.replace("name: b", "name: c"))
        await until(lambda: len(stand_in.told) > 1)
    assert stand_in.told == [["a", "b"], ["a", "c"]]


async def test_a_correction_is_handed_over_while_a_reload_lasts(tmp_path, monkeypatch):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    async with following(path, monkeypatch) as (reloader, stand_in):
        stand_in.done.clear()
        reloader.told.set()
        await until(lambda: stand_in.told == [["a", "b"]])
        path.write_text(CONFIG.replace("name: b", "name: c"))
        await until(lambda: stand_in.told == [["a", "b"], ["a", "c"]])


async def test_no_file_ends_the_reloader(tmp_path, monkeypatch):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    async with following(path, monkeypatch) as (reloader, stand_in):
        with capture_logs() as logs:
            for text in (
                CONFIG.replace("name: b,", "name: b, mode: [mtp-n3],"),
                CONFIG + "learning: !include x.yaml\n",
                CONFIG + "learning: &a [*a]\n",
                CONFIG + "learning: " + "[" * 900 + "]" * 900,
                CONFIG + "learning: 2026-02-30\n",
            ):
                path.write_text(text)
                await until(lambda: reloader._content == path.read_bytes())
            path.write_text(CONFIG.replace("name: b", "name: c"))
            await until(lambda: stand_in.told == [["a", "c"]])
    assert {line["event"] for line in logs} == {"config_refused", "config_reloaded"}
    assert not any(line.get("exc_info") for line in logs)


@pytest.mark.parametrize("text", ["", " \n\n", "# nothing yet\n", "auth: {cluster_secret: s}\n"])
async def test_a_file_without_workers_is_refused(tmp_path, monkeypatch, text):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    async with following(path, monkeypatch) as (_, stand_in):
        with capture_logs() as logs:
            path.write_text(text)
            await until(lambda: logs)
        assert (logs[0]["event"], stand_in.told) == ("config_refused", [])
        assert logs[0]["reason"].endswith("write `workers: []` to remove the last one")
        path.write_text("workers: []\n")
        await until(lambda: stand_in.told == [[]])


async def test_a_fault_of_ours_in_reading_ends_nothing_either(tmp_path, monkeypatch):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)

    def faulty(*_):
        raise RecursionError("too deep")

    async with following(path, monkeypatch) as (reloader, stand_in):
        with monkeypatch.context() as broken, capture_logs() as logs:
            broken.setattr("workers.__main__.load_config", faulty)
            reloader.told.set()
            await until(lambda: logs)
        reloader.told.set()
        await until(lambda: stand_in.told == [["a", "b"]])
    assert (logs[0]["event"], logs[0]["exc_info"]) == ("config_refused", True)
