"""`specroute report`: what is shown of what was asked, and where it can be written."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from click.testing import CliRunner

from router.cli.report import report

CONFIG = "models: [{name: m, target: m.gguf}]\nworkers: [{name: w, model: m}]\n"


@pytest.fixture
def run(tmp_path, redis_url):
    """The command on an empty Redis, writing to `tmp_path / "out.html"` unless told otherwise."""
    (tmp_path / "tiny.yaml").write_text(CONFIG)
    env = {"SPECROUTE_REDIS__URL": redis_url}

    def call(*arguments: str):
        place = ["--state-dir", str(tmp_path), "-o", str(tmp_path / "out.html")]
        return CliRunner(env=env).invoke(report, [*place, *arguments])

    return call


def shown(tmp_path) -> float:
    """Seconds that the report says it covers."""
    found = re.search(
        r"([-\d]+ [:\d]+) UTC to ([-\d]+ [:\d]+) UTC", (tmp_path / "out.html").read_text()
    )
    assert found is not None
    begin, end = (datetime.fromisoformat(text) for text in found.groups())
    return (end - begin).total_seconds()


@pytest.mark.parametrize(
    ("since", "seconds", "says"),
    [
        ("90m", 5400, ""),
        ("48h", 172_800, ""),
        ("8d", 604_800, "a report covers 10m to 7d: this one shows the last 7 days\n"),
        ("1m", 600, "a report covers 10m to 7d: this one shows the last 10 minutes\n"),
    ],
)
def test_it_covers_what_was_asked_or_says_what_instead(run, tmp_path, since, seconds, says):
    told = run("--since", since)
    assert told.exit_code == 0, told.output
    assert told.stderr == says
    assert shown(tmp_path) == pytest.approx(seconds, abs=1)


def test_a_folder_that_is_not_there_is_a_usage_error(run):
    told = run("-o", "/nonexistdir/x.html")
    assert told.exit_code == 2
    assert "there is no folder /nonexistdir; make it, or name another file with -o" in told.stderr


def test_a_file_that_cannot_be_written_is_a_usage_error(run):
    told = run("-o", "/proc/x.html")
    assert told.exit_code == 2
    assert "/proc/x.html cannot be written (" in told.stderr
