from __future__ import annotations

import click
import orjson
import pytest
from click.testing import CliRunner

from router.bench.load import Job, Sample
from router.bench.samples import append
from router.bench.workload import PROMPTS
from router.cli.bench import bench, parallel
from workers.timings import Timings


def _read(value: str) -> tuple[int, ...]:
    return parallel(click.Context(bench), bench.params[0], value)


def test_loads_are_read_from_a_list():
    assert _read("4") == (4,)
    assert _read("1, 2,4") == (1, 2, 4)


@pytest.mark.parametrize("value", ["", "two", "1,,2", "0", "1,-2"])
def test_what_is_no_load_is_refused(value):
    with pytest.raises(click.BadParameter, match="no list of positive numbers"):
        _read(value)


def test_samples_alone_are_reported_and_other_files_refused(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text("{}\n")
    found = CliRunner().invoke(bench, ["--samples", str(path)])
    assert found.exit_code == 2
    assert "line 1: no sample" in found.output
    job = Job("routed", PROMPTS[0], "tiny", round=1, max_tokens=160, seed=0)
    path.unlink()
    append(path, 2, [Sample(job, total_s=0.5, timings=Timings(predicted_n=21, predicted_ms=100.0))])
    found = CliRunner().invoke(bench, ["--samples", str(path), "--json"])
    assert found.exit_code == 0
    report = orjson.loads(found.output)
    assert report["concurrency"] == 2
    assert report["rows"][0]["decode_tps"]["mean"] == 200.0


@pytest.mark.parametrize(
    "words", [("--rounds", "0"), ("--warmup", "-1"), ("--per-class", "0"), ("--max-tokens", "0")]
)
def test_a_senseless_size_is_refused_before_measuring(words, tmp_path):
    # Nothing listens at port 1: a size that was accepted ends with another message.
    found = CliRunner().invoke(bench, ["--url", "http://127.0.0.1:1", *words])
    assert found.exit_code == 2
    assert f"Invalid value for '{words[0]}'" in found.output


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_samples_that_are_not_there_are_a_usage_error(tmp_path, more):
    path = tmp_path / "missing.jsonl"
    found = CliRunner().invoke(bench, ["--samples", str(path), *more])
    assert found.exit_code == 2
    assert f"{path} holds no samples to report" in found.output


def test_where_requests_went_is_told_in_words(tmp_path):
    path = tmp_path / "all.jsonl"
    timings = Timings(predicted_n=21, predicted_ms=100.0)
    for number, mode in enumerate(["ar", "mtp-n3", "mtp-n3"]):
        job = Job("routed", PROMPTS[0], "tiny", round=1, max_tokens=160, seed=number)
        append(path, 1, [Sample(job, total_s=0.5, mode=mode, timings=timings)])
    shown = CliRunner().invoke(bench, ["--samples", str(path)]).output
    assert "mtp-n3 2, ar 1" in shown
    assert "{" not in shown


ONE_MODE = """
models: [{name: tiny, target: /m/t.gguf}]
workers: [{name: plain, model: tiny, mode: ar}]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [(ONE_MODE, "nothing to compare"), ("models: [", "YAML"), ("model: []", "models")],
)
def test_a_config_that_cannot_be_compared_is_a_usage_error(tmp_path, text, said):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    shown = CliRunner().invoke(bench, ["-c", str(path)])
    assert shown.exit_code == 2
    assert said in shown.output
