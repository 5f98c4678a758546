"""The program as a process: what it prints and how it exits. Serving is tested in integration."""

from __future__ import annotations

import socket
import subprocess

import pytest

from workers.engines import EMBEDDED


def run(*argv):
    return subprocess.run([*EMBEDDED, *argv], capture_output=True, text=True, timeout=60)


def test_help_and_version_need_no_model():
    helped, versioned = run("--help"), run("--version")
    assert helped.returncode == versioned.returncode == 0
    assert "--spec-draft-p-min" in helped.stdout
    assert versioned.stdout.startswith("version: 1")


def test_an_unknown_flag_is_one_line_and_exit_1():
    done = run("--wrong")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: unknown flag --wrong")


@pytest.mark.slow
def test_a_port_in_use_and_a_model_that_is_none_are_told(tmp_path):
    model = tmp_path / "m.gguf"
    model.write_bytes(b"this is not a model at all")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run("-m", str(model), "--port", port)
    assert done.returncode == 1
    assert done.stderr == f"error: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    refused = run("-m", str(model), "--port", "0", "-np", "1")
    assert refused.returncode == 1
    # Not always the last line: llama.cpp's own come from a thread of its.
    told = [line for line in refused.stderr.splitlines() if line.startswith("error: ")]
    assert len(told) == 1
    assert told[0].startswith("error: llama.cpp could not start")
