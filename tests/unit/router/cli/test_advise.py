"""What `advise` says of files that it cannot use."""

from __future__ import annotations

import gzip
import json

import pytest
from click.testing import CliRunner

from router.cli.advise import advise

LOGGED = {"request": {"class": "prose", "prompt_tokens": 5}, "outcome": {"status": "ok"}}
REPORT = {"rows": [{"setting": "ar", "class": "prose", "decode_tps": {"mean": 20.0}}]}


def run(tmp_path, traffic: bytes, report: str):
    asked, measured = tmp_path / "t.jsonl.gz", tmp_path / "r.json"
    asked.write_bytes(traffic)
    measured.write_text(report)
    return CliRunner().invoke(advise, [str(asked), "--measured", str(measured)])


def test_a_plan_is_advised(tmp_path):
    shown = run(tmp_path, gzip.compress(json.dumps(LOGGED).encode()), json.dumps(REPORT))
    assert shown.exit_code == 0
    assert "Run ar" in shown.output


@pytest.mark.parametrize("report", ['{"rows":[{}]}', "{", '{"rows":[],"settings":null}'])
def test_a_report_that_is_none_is_a_usage_error(tmp_path, report):
    shown = run(tmp_path, gzip.compress(json.dumps(LOGGED).encode()), report)
    assert shown.exit_code == 2
    assert "r.json is no output of" in shown.output


def test_a_packed_file_that_was_cut_is_a_usage_error(tmp_path):
    shown = run(tmp_path, gzip.compress(json.dumps(LOGGED).encode())[:-9], json.dumps(REPORT))
    assert shown.exit_code == 2
    assert "t.jsonl.gz cannot be read" in shown.output
