"""The gateway's image, built without a container engine: its first two stages, word for word.

Each `COPY` and `RUN` of the Dockerfile is done in a folder that stands for the image's root, from a
package index and with compiling, which takes minutes: only in `make proof`. What the system's
package manager installs has to be here already.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.k8s.test_images import ROOT, stages
from tests.support.gateway_command import CONFIG
from tests.support.redis_server import private_redis
from tests.support.running import free_port

STARTS_WITHIN_S = 60.0

__test__ = bool(os.environ.get("SPECROUTE_PROOF"))  # or else nothing of it is collected
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


class Image:
    """A folder for the image's root; `base` is the Python image, which every stage begins with."""

    def __init__(self, folder: Path, compiled: str):
        self.folder = folder
        self.arguments = {"COMPILED": compiled}
        self.base = folder / "base"
        subprocess.run([_python(), "-m", "venv", self.base], check=True)

    def inside(self, text: str) -> str:
        """`text` with the image's paths as they are here."""
        return re.sub(r"(?<![\w./])/(dist|opt|src|tmp)\b", rf"{self.folder}/root/\1", text)

    def build(self, number: int) -> None:
        """Do one stage."""
        here = self.folder / "root/tmp"
        here.mkdir(parents=True, exist_ok=True)
        for word, rest in stages("Dockerfile.gateway")[number]:
            if word == "WORKDIR":
                here = Path(self.inside(rest))
                here.mkdir(parents=True)
            elif word == "COPY":
                self._copy(shlex.split(rest), here)
            elif word == "RUN" and "apt-get" not in rest:
                self._run(rest, here)

    def _copy(self, words: list[str], here: Path) -> None:
        *sources, target = words
        if sources[0].startswith("--from="):
            found = [one for text in sources[1:] for one in self._glob(text)]
        else:
            found = [ROOT / text for text in sources]
        place = here / self.inside(target)
        for source in found:
            if source.is_dir():
                shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (place / source.name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, place)

    def _glob(self, text: str) -> list[Path]:
        path = Path(self.inside(text))
        return sorted(path.parent.glob(path.name))

    def _run(self, command: str, here: Path) -> None:
        environ = os.environ | self.arguments | {"PATH": f"{self.base}/bin:/usr/bin:/bin"}
        done = subprocess.run(
            ["/bin/sh", "-c", self.inside(command)],
            cwd=here,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"


def _python() -> str:
    """The version that the image has, if it is here, or else the one of the tests."""
    (line,) = re.findall(
        r"python:(\d+\.\d+)", (ROOT / "deploy/Dockerfile.gateway").read_text().split("FROM")[0]
    )
    other = shutil.which(f"python{line}")
    works = other and not subprocess.run([other, "-V"], capture_output=True, check=False).returncode
    return other if other and works else sys.executable


@pytest.fixture(scope="module", params=["1", "0"], ids=["compiled", "plain"])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    built = Image(tmp_path_factory.mktemp("image"), request.param)
    built.build(0)
    built.build(1)
    return built


def _program(image: Image) -> str:
    return image.inside("/opt/specroute/bin/specroute")


def test_the_program_says_what_it_is(image: Image) -> None:
    argv = [_program(image), "--version"]
    said = subprocess.run(argv, cwd="/", capture_output=True, text=True, check=True).stdout.strip()
    assert said.endswith("(compiled)") is (image.arguments["COMPILED"] == "1"), said


def test_no_build_tool_is_in_what_the_last_stage_copies(image: Image) -> None:
    (site,) = Path(image.inside("/opt/specroute")).glob("lib/python3*/site-packages")
    there = {path.name for path in site.iterdir()}
    assert "router" in there
    assert not there & {"mypy", "mypyc", "hatchling", "pip"}


def test_it_serves(image: Image, tmp_path: Path) -> None:
    port = free_port()
    environ = {"PATH": "/usr/bin:/bin", "SPECROUTE_SERVER__PORT": str(port)}
    (tmp_path / "c.yaml").write_text(CONFIG.format(url=f"unix://{tmp_path}/r.sock"))
    argv = [_program(image), "gateway", "-c", "c.yaml", "--state-dir", "state"]
    with private_redis(tmp_path / "r.sock"), (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=tmp_path, env=environ, stdout=log, stderr=log)
        try:
            _until_it_answers(f"http://127.0.0.1:{port}/v1/models", process)
        finally:
            process.terminate()
            code = process.wait(60)
    said = (tmp_path / "log").read_text()
    assert code == 0, said[-3000:]
    assert "Warning" not in said  # of Python, about what mypyc makes


def _until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(url, timeout=STARTS_WITHIN_S).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail("it does not answer")
