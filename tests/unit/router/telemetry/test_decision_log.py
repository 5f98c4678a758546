from __future__ import annotations

from dataclasses import replace

import orjson

from router.telemetry.decision_log import SCHEMA, DecisionLog, row
from tests.fakes.outcomes import outcome


def lines(path):
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_a_line_has_what_replay_needs(tmp_path):
    log = DecisionLog(tmp_path / "logs" / "decisions.jsonl")
    log.record(outcome())
    log.close()
    (line,) = lines(log.path)
    assert line["v"] == SCHEMA
    assert line["request"]["class"] == "prose"
    assert line["decision"]["propensity"] == 1.0
    assert line["decision"]["candidates"][0]["decode_s"] == 2.0
    assert line["decision"]["candidates"][1] == {
        "worker": "other",
        "mode": "ar",
        "excluded_because": "is draining",
    }
    assert line["outcome"]["predicted_n"] == 101


def test_no_content_and_no_session_id_is_kept():
    kept = row(outcome(answer_sample=b"the secret", conversation="my own words", key_id="k"))
    text = orjson.dumps(kept)
    assert b"secret" not in text
    assert b"my own words" not in text
    assert len(kept["conversation"]) == 16
    assert row(outcome(conversation=""))["conversation"] == ""


def test_a_refusal_has_neither_class_nor_decision():
    kept = row(replace(outcome(), classification=None, decision=None))
    assert kept["decision"] is None
    assert "class" not in kept["request"]


def test_the_file_is_rotated_by_size_and_the_oldest_goes(tmp_path):
    size = len(orjson.dumps(row(outcome()))) + 1
    log = DecisionLog(tmp_path / "d.jsonl", max_bytes=2 * size + 20, keep=2)
    for number in range(9):
        log.record(outcome(at=float(number)))
    log.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.jsonl", "d.jsonl.1", "d.jsonl.2"]
    assert lines(log.path)[-1]["at"] == 8.0
    assert lines(tmp_path / "d.jsonl.1")[-1]["at"] < 8.0


def test_an_old_file_is_continued(tmp_path):
    for number in range(2):
        log = DecisionLog(tmp_path / "d.jsonl")
        log.record(outcome(at=float(number)))
        log.close()
    assert [line["at"] for line in lines(log.path)] == [0.0, 1.0]


def test_a_disk_that_fails_is_survived_and_counted(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    log = DecisionLog(tmp_path / "file" / "d.jsonl")
    log.record(outcome())
    log.record(outcome())
    log.close()
    assert log.lost == 2
