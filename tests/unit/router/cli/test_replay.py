from __future__ import annotations

import re

import orjson
import pytest
from click.testing import CliRunner

from router.cli.replay import replay
from router.core import Candidate, CostEstimate, Reason, RoutingDecision
from router.telemetry.decision_log import row
from tests.fakes.outcomes import outcome


def log(tmp_path, count: int) -> str:
    rows = []
    candidates = tuple(
        Candidate(name, mode, CostEstimate()) for name, mode in (("plain", "ar"), ("prose", "mtp"))
    )
    for number in range(count):
        worker = "plain" if number % 2 else "prose"
        decision = RoutingDecision(worker, "ar", Reason.EXPLORATION, candidates, "l", 0.5)
        seconds = 2.0 if worker == "plain" else 1.0
        rows.append(row(outcome(worker=worker, decision=decision, total_s=seconds)))
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return str(path)


def test_another_policy_is_judged_by_the_log(tmp_path):
    arguments = [log(tmp_path, 200), "--policy", "static", "--worker", "prose", "--json"]
    shown = CliRunner().invoke(replay, arguments)
    assert shown.exit_code == 0
    figures = orjson.loads(shown.stdout)
    assert figures["replayed_seconds"] == 1.0
    assert figures["logged_seconds"] == 1.5


def test_too_little_evidence_ends_with_one_sentence(tmp_path):
    shown = CliRunner().invoke(replay, [log(tmp_path, 10), "--policy", "static"])
    assert shown.exit_code == 1
    assert "effective requests of 10" in shown.output


def test_an_unknown_policy_is_a_usage_error(tmp_path):
    shown = CliRunner().invoke(replay, [log(tmp_path, 10), "--policy", "nobody"])
    assert shown.exit_code == 2
    assert "there are learned" in shown.output


def test_the_table_is_for_people(tmp_path):
    shown = CliRunner().invoke(replay, [log(tmp_path, 200), "--policy", "static"])
    assert "replayed_seconds" in shown.stdout
    assert "interval" in shown.stdout
    assert re.search(r"\d\.\d{5}|\[", shown.stdout) is None


def test_a_worker_that_the_log_does_not_know_is_a_usage_error(tmp_path):
    words = [log(tmp_path, 200), "--policy", "static", "--worker", "zzz"]
    shown = CliRunner().invoke(replay, words)
    assert shown.exit_code == 2
    assert "no worker 'zzz'; it has: plain, prose" in shown.output


@pytest.mark.parametrize("more", [["--policy", "learned"], ["--forecasts"]])
def test_a_worker_that_nothing_would_use_is_a_usage_error(tmp_path, more):
    shown = CliRunner().invoke(replay, [log(tmp_path, 200), *more, "--worker", "plain"])
    assert shown.exit_code == 2
    assert "--worker is of --policy static" in shown.output


@pytest.mark.parametrize("more", [[], ["--forecasts"]])
@pytest.mark.parametrize("text", ["", "# Readme\n", "[1]\n", '{"messages": []}\n', '{"v": 1}\n'])
def test_a_file_without_decisions_is_a_usage_error(tmp_path, text, more):
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    shown = CliRunner().invoke(replay, [log(tmp_path, 200), str(path), *more])
    assert shown.exit_code == 2
    assert f"{path} has no logged decisions" in shown.output


@pytest.mark.parametrize("more", [["--policy", "static"], ["--forecasts"]])
def test_lines_that_are_no_complete_decision_are_left_out_and_counted(tmp_path, more):
    path = log(tmp_path, 200)
    with open(path, "ab") as file:
        file.write(b'\n{"v":1,"outcome":{}}\n{"v":1}\n{"cut')
    shown = CliRunner().invoke(replay, [path, *more])
    assert "3 of 203 lines are no decision and were left out" in shown.stderr
    if "--forecasts" not in more:
        assert shown.exit_code == 0


def test_a_log_without_a_complete_decision_is_a_usage_error(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"v":1,"outcome":{"status":"ok","total_s":-1}}\n')
    shown = CliRunner().invoke(replay, [str(path)])
    assert shown.exit_code == 2
    assert "has no logged decisions" in shown.output
