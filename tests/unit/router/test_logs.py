"""Lines that nobody has to wait for, and what a request's line holds."""

from __future__ import annotations

import io
import logging
import threading

import orjson
import pytest
import structlog

from router.core import Outcome, Status
from router.logs import LineWriter, RequestLog, change_level, configure_logs, current_level
from tests.fakes.gateway import classified, decision
from workers.timings import Timings


@pytest.fixture(autouse=True)
def _own_logging():
    """Leave logging as it was."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, structlog.get_config())
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    structlog.configure(**before[2])


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


class _Stuck(io.StringIO):
    """A stream that blocks until released."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def write(self, text: str) -> int:
        self.go.wait(10)
        return super().write(text)


def test_a_stuck_reader_costs_lines_and_never_time():
    stream = _Stuck()
    writer = LineWriter(stream, capacity=5)
    for number in range(50):
        writer.write(str(number))
    assert writer.dropped >= 40  # one batch may have been taken meanwhile
    stream.go.set()
    writer.close()
    assert stream.getvalue().startswith("0\n1\n")


def test_a_stream_that_is_closed_is_survived():
    stream = io.StringIO()
    writer = LineWriter(stream)
    stream.close()
    writer.write("x")
    writer.close()
    assert writer.dropped == 1


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_structlog_and_the_standard_library_meet_in_one_stream(log_format):
    stream = io.StringIO()
    writer = configure_logs(log_format, "info", stream)
    structlog.get_logger("x").info("happened", detail=7)
    structlog.get_logger("x").debug("unheard")
    logging.getLogger("uvicorn.error").warning("careful")
    logging.getLogger("uvicorn.error").info("unheard")
    writer.close()
    text = stream.getvalue()
    assert "happened" in text
    assert "7" in text
    assert "careful" in text
    assert "unheard" not in text
    if log_format == "json":
        assert orjson.loads(text.splitlines()[0])["event"] == "happened"


def test_the_level_changes_while_it_runs():
    stream = io.StringIO()
    writer = configure_logs("json", "info", stream)
    log = structlog.get_logger("x")
    log.debug("before")
    change_level("debug")
    log.debug("during")
    assert current_level() == "debug"
    change_level("error")
    log.warning("after")
    writer.close()
    assert "during" in stream.getvalue()
    assert "before" not in stream.getvalue()
    assert "after" not in stream.getvalue()
