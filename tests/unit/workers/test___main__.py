"""What the agent's command refuses, and in which words. Running it is tested in integration."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from workers.__main__ import agent

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
