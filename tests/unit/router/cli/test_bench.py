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
