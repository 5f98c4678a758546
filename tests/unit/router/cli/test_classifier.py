from __future__ import annotations

import gzip

import pytest
from click.testing import CliRunner

from router.cli.classifier import group

HI = '{"messages": [{"role": "user", "content": "hi"}]}'


def run(*words: str, stdin: str | None = None):
    return CliRunner().invoke(group, words, input=stdin)


@pytest.mark.parametrize("words", [(), ("-",)])
def test_a_chat_on_standard_input_is_explained(words):
    shown = run("explain", *words, stdin=HI)
    assert shown.exit_code == 0
    assert "prose (chat)" in shown.stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "messages must be an array"),
        ('{"messages": 5}', "messages must be an array"),
        ('{"messages": [{}]}', "must be an object with a role"),
    ],
)
def test_what_the_gateway_refuses_is_not_explained(body, said):
    shown = run("explain", "-", stdin=body)
    assert shown.exit_code == 2
    assert said in shown.output


@pytest.mark.parametrize("command", [("evaluate",), ("train", "--out", "model.json"), ("prove",)])
def test_a_file_without_a_labelled_request_is_a_usage_error(command, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n")
    shown = run(*command, str(path))
    assert shown.exit_code == 2
    assert f"{path} has no labelled request" in shown.output


def test_a_file_that_is_no_text_is_a_usage_error(tmp_path):
    binary, cut = tmp_path / "rows.jsonl", tmp_path / "rows.jsonl.gz"
    binary.write_bytes(b"\xff\xfe\x00")
    cut.write_bytes(gzip.compress(HI.encode())[:-9])
    for path in (binary, cut):
        shown = run("evaluate", str(path))
        assert shown.exit_code == 2
        assert f"{path} cannot be read" in shown.output


def labelled(tmp_path) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text(HI[:-1] + ', "label": "prose", "kind": "chat"}\n')
    return str(path)


@pytest.mark.parametrize("text", ["", "{}", '{"format": 99}'])
def test_a_model_that_is_none_is_a_usage_error(tmp_path, text):
    model = tmp_path / "model.json"
    model.write_text(text)
    rows = labelled(tmp_path)
    for words in (("explain", "-"), ("evaluate", rows)):
        shown = run(*words, "--model", str(model), stdin=HI)
        assert shown.exit_code == 2
        assert "model.json: not a classifier artifact" in shown.output


def test_a_model_that_could_not_be_kept_is_not_trained(tmp_path):
    out = tmp_path / "nowhere" / "model.json"
    shown = run("train", labelled(tmp_path), "--out", str(out), "--no-cv")
    assert shown.exit_code == 2
    assert f"there is no folder {out.parent}" in " ".join(shown.output.split())


def test_a_full_disk_is_one_sentence(tmp_path):
    words = ("train", labelled(tmp_path), "--out", "/dev/full", "--no-cv", "--no-authored")
    shown = run(*words)
    assert shown.exit_code == 1
    assert "/dev/full cannot be written" in shown.output


def test_too_few_groups_to_cross_validate_are_a_usage_error(tmp_path):
    shown = run("evaluate", labelled(tmp_path), "--cv")
    assert shown.exit_code == 2
    assert "needs rows of 5 groups, here are 1" in shown.output


@pytest.mark.parametrize("seeds", ["0", "5-2"])
def test_no_draw_proves_nothing(tmp_path, seeds):
    shown = run("prove", labelled(tmp_path), "--seeds", seeds)
    assert shown.exit_code == 2
    assert "no draw at all" in shown.output


@pytest.mark.parametrize("kind", ["all", "nope"])
def test_no_kind_to_leave_out_proves_nothing(tmp_path, kind):
    shown = run("prove", labelled(tmp_path), "--kind", kind)
    assert shown.exit_code == 2
    assert f"--kind {kind}" in shown.output
