"""Lines that nobody has to wait for."""

from __future__ import annotations

import io
import logging
import threading

import orjson
import pytest
import structlog

from workers.logs import LineWriter, change_level, configure_logs, current_level


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
    logging.getLogger("somebody.else").warning("careful")
    logging.getLogger("somebody.else").info("unheard")
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
