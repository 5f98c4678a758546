"""Reports of measurements: what is read of them, and what none can say."""

from __future__ import annotations

import math

import pytest

from router.bench.measured import BadReport, parse_report, read_report
from router.bench.report import Row, geometric_mean

ROW = {"setting": "ar", "class": "prose", "decode_tps": {"mean": 20.0}, "n": 3}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("class", (None, 5, [], "")),
        ("setting", (5, [])),
        ("concurrency", (0, -1, "1", 1.5, True)),
        ("prompt_tokens", (-1, "100", 1e308)),
        ("n", (0, None)),
        ("ttft_ms", (None, 5, {"p50": -1}, {"p50": "1"}, {"p50": 1e308})),
        (
            "decode_tps",
            (
                5,
                {},
                {"mean": 0},
                {"mean": -5},
                {"mean": "5"},
                {"mean": math.nan},
                {"mean": 5, "lower": -1},
                {"mean": 5, "lower": 3, "upper": 1},
            ),
        ),
    ],
)
def test_a_row_that_no_measurement_gives_is_refused_by_its_place(name, values):
    for value in values:
        with pytest.raises(BadReport, match=rf"rows\.1\.{name}"):
            parse_report({"rows": [ROW, {**ROW, name: value}]})


@pytest.mark.parametrize(
    "report",
    [
        None,
        [],
        {},
        {"rows": None},
        {"rows": [{}]},
        {"rows": [None]},
        {"rows": [ROW], "settings": None},
        {"rows": [ROW], "settings": [{"memory_gb": 1}]},
        {"rows": [ROW], "settings": [{"setting": "ar", "memory_gb": "1"}]},
        {"rows": [ROW], "by_concurrency": [{"concurrency": 1}]},
        {"rows": [{k: v for k, v in ROW.items() if k != "setting"}]},
    ],
)
def test_what_is_no_report_is_refused(report):
    with pytest.raises(BadReport):
        parse_report(report)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000, b'{"rows": [NaN]}'])
def test_a_file_that_is_no_report_is_named(tmp_path, text):
    path = tmp_path / "r.json"
    path.write_bytes(text)
    with pytest.raises(BadReport, match=r"r\.json is no output of `sweep --json`"):
        read_report(path)


def test_one_answer_has_an_interval_without_ends():
    row = Row("ar", "prose", 1, geometric_mean([20.0]), None, None, None, None).as_dict()
    (cell,) = parse_report({"rows": [row]}).rows
    assert cell.decode_tps is not None
    assert cell.decode_tps.upper == math.inf
