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
