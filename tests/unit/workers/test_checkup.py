from __future__ import annotations

from pathlib import Path

import pytest

import workers.tiny
from workers.checkup import check_everything
from workers.config import load_config

TINY = Path(workers.tiny.__file__).parent
GOOD = f"""\
models: [{{name: tiny, target: {TINY / "target.gguf"}}}]
workers:
  - {{name: code, model: tiny, mode: dflash2-margin, draft: {TINY / "draft.gguf"}, slots: 2}}
  - {{name: far, model: tiny, url: 'http://10.0.0.1:8080'}}
"""


def checked(tmp_path, text, path=""):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    reports, problems = check_everything(load_config(file, {}), path)
    return {report.name: report for report in reports}, problems


def test_a_good_file(tmp_path):
    reports, problems = checked(tmp_path, GOOD)
    assert problems == []
    code, far = reports["code"], reports["far"]
    assert code.supported
    assert code.dialect == "stock"
    assert "does not list" in code.dialect_because
    assert code.build.startswith("b1")
    assert code.argv[-2:] == ("--spec-draft-p-min", "0.74")
    assert 0.05 < code.memory_gb < 1.0
    assert (far.argv, far.supported, far.memory_gb) == ((), True, None)


@pytest.mark.parametrize(
    ("old", "new", "message", "fix"),
    [
        ("slots: 2", "args: [--what]", "does not know --what; from `args`", "remove or correct"),
        ("slots: 2", "binary: /nowhere/x", "/nowhere/x is not an executable", "correct `binary`"),
        ("slots: 2", "draft_context: 4096", "`draft_context` needs a build", "remove it"),
        ("slots: 2", "context: 9000", "more than the model's own 4096", "lower `context`"),
        (
            "slots: 2",
            "gpu: {devices: [0]}",
            "with --device (the embedded",
            "set `binary` to a build",
        ),
        ("slots: 2", "binary: /bin/true", "lists no flags", "is it a llama-server?"),
    ],
)
def test_what_the_program_cannot_do_is_told_at_the_workers_line(tmp_path, old, new, message, fix):
    reports, (problem,) = checked(tmp_path, GOOD.replace(old, new))
    assert not reports["code"].supported
    assert problem.line == 3
    assert message in problem.message
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("settings", "advised"),
    [
        ("slots: 2", False),
        ("slots: 3", True),
        ("slots: 4, args: [--kv-unified]", False),
        ("slots: 4, args: [-kvu]", False),
        ("slots: 4, kv: unified", False),
    ],
)
def test_slots_that_decode_apart_are_advised_about(tmp_path, settings, advised):
    reports, problems = checked(tmp_path, GOOD.replace("slots: 2", settings))
    assert problems == []
    assert reports["code"].supported
    assert [("--kv-unified" in a) for a in reports["code"].advice] == [True] * advised
    assert reports["far"].advice == ()


def test_gpus_are_counted_and_measured(tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '0, Small, 60, 60'\n")
    program.chmod(0o755)
    text = GOOD.replace("slots: 2", "gpu: {devices: [0], layers: all}, args: [--no-warmup]")
    text = text.replace("gpu: {", "context: 100000, gpu: {")
    _, problems = checked(tmp_path, text, str(tmp_path))
    assert any("does not fit, needs" in p.message and "of 0.1 GB" in p.message for p in problems)
    assert any("q8_0 KV" in p.fix for p in problems)
    _, problems = checked(tmp_path, GOOD.replace("slots: 2", "gpu: {devices: [3]}"), str(tmp_path))
    assert any("there is no GPU 3" in p.message for p in problems)
