"""The agent in what its image holds and nothing else: it starts, loads a real worker, gets ready.

There is no container engine here, so the Dockerfile's steps are done in an environment of their
own. The long version (`make proof`) runs its pip commands as they stand, from a package index; the
short one takes the same distributions from where the tests run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.k8s.test_images import ROOT, instructions, pins
from tests.support.redis_server import private_redis
from tests.support.running import free_port
from workers.tiny.trio import SHIPPED_TARGET

if TYPE_CHECKING:
    from collections.abc import Iterator

PROOF = bool(os.environ.get("SPECROUTE_PROOF"))
HEAVY = ("fastapi", "starlette", "uvicorn", "sklearn", "litellm", "numpy", "torch", "xllamacpp")
READY_WITHIN_S = 120.0

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(900)]


def _run(argv: list[str], cwd: Path) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(argv)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def _pip_steps() -> list[list[str]]:
    """The arguments of every `pip install` in the Dockerfile, in order."""
    found = []
    for word, rest in instructions("Dockerfile.agent"):
        if word == "RUN":
            found += [shlex.split(one) for one in re.findall(r"pip (install [^&]*)", rest)]
    return found


def _from_an_index(venv: Path, folder: Path) -> None:
    """The Dockerfile's three pip steps and its build of the wheel."""
    build, locked, wheel = _pip_steps()
    tools = folder / "tools"
    _run([sys.executable, "-m", "venv", str(tools)], folder)
    _run([str(tools / "bin/python"), "-m", "pip", "-q", *build], ROOT)
    argv = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder / "dist"), "."]
    _run([str(tools / "bin/python"), *argv], ROOT)
    _run([sys.executable, "-m", "venv", str(venv)], folder)
    pip = [str(venv / "bin/python"), "-m", "pip", "-q"]
    lock = str(ROOT / "deploy/requirements-agent.lock")
    _run([*pip, *(lock if word.endswith(".lock") else word for word in locked)], ROOT)
    (made,) = (folder / "dist").glob("*.whl")
    _run([*pip, *(str(made) if word.endswith(".whl") else word for word in wheel)], ROOT)


def _from_here(venv: Path, folder: Path) -> None:
    """The distributions that the lock names, and our packages, as links."""
    _run([sys.executable, "-m", "venv", "--without-pip", str(venv)], folder)
    (site,) = venv.glob("lib/python3*/site-packages")
    for name in pins("requirements-agent.lock"):
        for file in distribution(name).files or ():
            top = Path(file.parts[0])
            target = Path(str(file.locate())).parents[len(file.parts) - 1] / top
            if top.name not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(target)
    for name in ("classifier", "router", "workers"):
        (site / name).symlink_to(ROOT / name)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment like the image's."""
    folder = tmp_path_factory.mktemp("image")
    venv = folder / "specroute"
    (_from_an_index if PROOF else _from_here)(venv, folder)
    return venv / "bin/python"


def test_nothing_heavy_is_in_it(image: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, sys\n"
        f"print(*[name for name in {HEAVY!r} if u.find_spec(name)], sys.flags.safe_path)"
    )
    assert _run([str(image), "-P", "-c", code], tmp_path).split() == ["True"]


def _engine(folder: Path) -> Path:
    """What the engine image has as llama-server: a program with libraries of its own."""
    program = folder / "llama-server"
    command = shlex.join([sys.executable, "-m", "workers.llama_embedded"])
    program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {command} "$@"\n')
    program.chmod(0o755)
    return program


@contextmanager
def _agent(image: Path, folder: Path, redis: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The image's entry point on one worker."""
    config = folder / "specroute.yaml"
    config.write_text(
        f"""redis: {{url: "unix://{redis}"}}
auth: {{cluster_secret: secret-of-the-tests}}
models: [{{name: tiny, target: "{SHIPPED_TARGET}"}}]
workers:
  - {{name: one, model: tiny, mode: mtp-n3, binary: "{_engine(folder)}", port: {free_port()},
     context: 1024, slots: 1, threads: 1}}
"""
    )
    (entry,) = [rest for word, rest in instructions("Dockerfile.agent") if word == "ENTRYPOINT"]
    flags = re.findall(r'"([^"]+)"', entry)[1:]
    argv = [str(image), *flags, "-c", str(config), "--state-dir", str(folder / "state")]
    with (folder / "agent.log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=folder, env={"PATH": "/usr/bin:/bin"}, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(60) == 0


def test_the_agent_starts_a_real_worker_and_serves_its_ready_path(
    image: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("pod")
    socket = folder / "r.sock"
    with private_redis(socket), _agent(image, folder, socket) as process:
        ready, deadline = folder / "state/ready", time.monotonic() + READY_WITHIN_S
        while not ready.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.1)
        assert ready.exists(), (folder / "agent.log").read_text()[-3000:]
        assert (folder / "state/alive").exists()
    assert not ready.exists()
