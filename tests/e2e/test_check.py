"""`specroute check` as a stranger would meet it: broken files, and what is said of each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import workers.tiny
from router.cli.check import check
from router.cli.up import up

TINY = Path(workers.tiny.__file__).parent

GOOD = f"""\
models:
  - name: tiny
    target: {TINY / "target.gguf"}
workers:
  - {{name: code, model: tiny, mode: dflash2-margin, draft: {TINY / "draft.gguf"}, context: 4096}}
  - {{name: prose, model: tiny, mode: mtp-n3, context: 4096, slots: 2}}
  - {{name: plain, model: tiny, mode: ar, context: 4096}}
"""

# what is broken -> (the edit, what the message must name, what it must advise)
BROKEN = {
    "misspelt key": (("slots: 2", "slotz: 2"), "slotz", "slots"),
    "misspelt section": (("workers:", "worker:"), "worker", "workers"),
    "unknown mode": (("mode: ar", "mode: arr"), "arr", "ar"),
    "missing model file": (("target.gguf", "targt.gguf"), "targt.gguf", ""),
    "missing draft": ((f", draft: {TINY / 'draft.gguf'}", ""), "draft", "draft"),
    "two workers of one name": (("name: prose", "name: code"), "code", ""),
    "unknown model": (("model: tiny, mode: ar", "model: tini, mode: ar"), "tini", "tiny"),
    "margin on a mode without one": (("mode: ar", "mode: ar, margin: 1.0"), "margin", ""),
    "negative slots": (("slots: 2", "slots: -2"), "slots", ""),
    "text for a number": (("slots: 2", "slots: many"), "slots", ""),
    "binary that is not there": (
        ("mode: ar", "mode: ar, binary: /nowhere/llama-server"),
        "/nowhere/llama-server",
        "binary",
    ),
    "flag that the binary does not know": (
        ("mode: ar", "mode: ar, args: [--draft-max, '16']"),
        "--draft-max",
        "",
    ),
    "unset variable": (("name: tiny\n", "name: ${NO_SUCH_VARIABLE}\n"), "NO_SUCH_VARIABLE", ""),
    "not YAML": (("workers:", "workers: ["), "", ""),
}


def run_check(path: Path, *arguments: str):
    """In this process: seventeen interpreters would cost a minute."""
    return CliRunner().invoke(check, ["-c", str(path), *arguments])


def test_a_good_file_is_ok_and_shows_the_command_lines(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    done = run_check(path, "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["ok"] is True
    assert answer["problems"] == []
    argv = {w["name"]: " ".join(w["argv"]) for w in answer["workers"]}
    assert "--spec-type draft-dflash" in argv["code"]
    assert "--spec-draft-n-max 7 --spec-draft-n-min 1 --spec-draft-p-min 0.74" in argv["code"]
    assert "--spec-type draft-mtp --spec-draft-n-max 3" in argv["prose"]
    assert "-c 8192 -np 2" in argv["prose"]
    assert "--spec" not in argv["plain"]


@pytest.mark.parametrize("name", list(BROKEN))
def test_each_broken_file_is_told_where_and_what_to_do(tmp_path, name):
    (old, new), names, advises = BROKEN[name]
    assert old in GOOD
    path = tmp_path / "broken.yaml"
    path.write_text(GOOD.replace(old, new, 1))
    done = run_check(path, "--json")
    assert done.exit_code == 1, done.output
    assert isinstance(done.exception, SystemExit)
    problems = json.loads(done.stdout)["problems"]
    assert problems
    text = "\n".join(f"{p['message']} {p['fix']}" for p in problems)
    assert names in text
    assert advises in text
    assert all(p["message"] and p["fix"] for p in problems)
    assert any(p["line"] for p in problems) or name == "not YAML"


def test_a_file_that_is_not_there(tmp_path):
    done = run_check(tmp_path / "none.yaml")
    assert done.exit_code in (1, 2)
    assert "none.yaml" in done.stderr
    assert isinstance(done.exception, SystemExit)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no model and no worker is configured"),
        ("models: [{name: m}]\nworkers: []\n", "no worker is configured"),
    ],
)
def test_a_file_with_which_nothing_could_be_served_is_not_ok(tmp_path, text, says):
    path = tmp_path / "empty.yaml"
    path.write_text(text)
    done = run_check(path)
    assert done.exit_code == 1
    assert says in done.stderr
    assert "ok" not in done.stdout
    refused = CliRunner().invoke(up, ["-c", str(path), "--state-dir", str(tmp_path / "state")])
    assert refused.exit_code == 2
    assert says in refused.stderr


def test_a_gateway_whose_workers_are_elsewhere_is_ok(tmp_path):
    path = tmp_path / "gateway.yaml"
    path.write_text("redis: {url: 'redis://redis:6379'}\n")
    done = run_check(path)
    assert (done.exit_code, done.stdout) == (0, "ok\n")


def test_a_misspelt_section_is_one_problem(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text(GOOD.replace("workers:", "worker:", 1))
    assert len(json.loads(run_check(path, "--json").stdout)["problems"]) == 1


def test_the_schema_knows_the_modes():
    command = [sys.executable, "-m", "router", "check", "--schema"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "workers" in json.loads(done.stdout)["properties"]
