"""What a request's line holds."""

from __future__ import annotations

import io

import orjson

from router.core import Outcome, Status
from router.logs import RequestLog
from tests.fakes.gateway import classified, decision
from workers.logs import LineWriter
from workers.timings import Timings


def _outcome(**changes) -> Outcome:
    values = {
        "request_id": "r1",
        "endpoint": "/v1/chat/completions",
        "model": "tiny",
        "status": Status.OK,
        "wall_time": 1_700_000_000.0,
        "classification": classified()[1],
        "decision": decision(),
        "worker": "plain",
        "mode": "ar",
        "total_s": 1.5,
        "ttft_s": 0.25,
        "timings": Timings(draft_n=4, draft_n_accepted=3),
        "answer_sample": b"the answer itself",
    }
    return Outcome(**(values | changes))


def _line(log_format: str, outcome: Outcome) -> str:
    stream = io.StringIO()
    writer = LineWriter(stream)
    RequestLog(writer, log_format).observe(outcome)
    writer.close()
    return stream.getvalue()


def test_a_requests_line_as_json():
    row = orjson.loads(_line("json", _outcome()))
    assert row["request_id"] == "r1"
    assert row["class"] == "prose"
    assert (row["total_ms"], row["ttft_ms"]) == (1500.0, 250.0)
    assert (row["draft_n"], row["draft_n_accepted"]) == (4, 3)
    assert "the answer itself" not in str(row)


def test_a_requests_line_for_the_eye_leaves_out_what_is_unknown():
    line = _line("console", _outcome(ttft_s=None))
    assert "worker=plain" in line
    assert "ttft" not in line
    assert line.count("\n") == 1


def test_a_refused_request_has_a_line_too():
    bare = _outcome(classification=None, decision=None, error_code="queue_full")
    assert orjson.loads(_line("json", bare))["error"] == "queue_full"
    assert "error=queue_full" in _line("console", bare)
