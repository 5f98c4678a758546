"""What counts as a line of a decision log, and what is left out."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from router.core import Status
from router.simulation.logged import Classified, Tally, read_line, read_log
from router.telemetry.decision_log import DecisionLog, row
from tests.fakes.outcomes import outcome

GONE = object()


def line(path: tuple[str, ...], value: Any) -> bytes:
    """A whole line but for one value."""
    data = row(outcome())
    part = data
    for name in path[:-1]:
        part = part[name]
    if value is GONE:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return orjson.dumps(data)


def test_a_log_is_read_as_it_was_written(tmp_path):
    log = DecisionLog(tmp_path / "d.jsonl")
    for number in range(3):
        log.record(outcome(at=float(number)))
    log.close()
    with log.path.open("ab") as file:
        file.write(b'{"v": 1, "cut')
    tally = Tally()
    assert [line.at for line in read_log([log.path], tally)] == [0.0, 1.0, 2.0]
    assert (tally.lines, tally.left_out) == (4, 1)


def test_every_way_a_request_can_end_is_read_back():
    shed = outcome(status=Status.SHED, classification=None, decision=None, total_s=0.0)
    for done in (outcome(), outcome(mode="ar", prompt_tokens=None, completion_tokens=None), shed):
        found = read_line(orjson.dumps(row(done)))
        assert found is not None
        assert found.outcome.timings == done.timings
        assert isinstance(found.request, Classified) is (done.classification is not None)


def test_a_log_of_another_version_is_refused(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_bytes(orjson.dumps({"v": 99, "outcome": {}}) + b"\n")
    with pytest.raises(ValueError, match="schema 99"):
        list(read_log([path]))


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (("outcome", "total_s"), (-1, 0, 1e308, "2", None, True, GONE)),
        (("outcome", "status"), ("fine", 5, GONE)),
        (("outcome", "occupancy"), (-1, 1.5, None, GONE)),
        (("outcome",), (None, [], 5)),
        (("decision", "propensity"), (5e-324, -1, 2, "1", None, GONE)),
        (("decision", "candidates"), ({}, None, [5], [{}], [None], GONE)),
        (("request", "probabilities"), (None, [], {"prose": "much"}, {"prose": -1}, GONE)),
        (("request", "output_tokens_interval"), ([], [1], [None, None], [-1, 1], GONE)),
        (("request", "kind"), (None, 5, GONE)),
        (("request",), (None, [], GONE)),
        (("at",), ("now", -1, 1e308, GONE)),
        (("model",), (None, 5, GONE)),
    ],
)
def test_a_line_with_what_cannot_be_is_left_out(path, values):
    for value in values:
        assert read_line(line(path, value)) is None


@pytest.mark.parametrize("text", [b"[" * 100_000, b"\xff\xfe", b"null", b'{"v": 1}', b"{" * 9])
def test_a_line_of_something_else_is_left_out(text):
    assert read_line(text) is None


def test_figures_of_an_engine_that_cannot_be_are_unknown():
    found = read_line(line(("outcome", "predicted_n"), "many"))
    assert found is not None
    assert found.outcome.timings.predicted_n is None
