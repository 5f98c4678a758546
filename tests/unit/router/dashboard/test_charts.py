"""Charts are well-formed SVG, with gaps, marks and signs beside colours."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from router.dashboard.app import STATIC
from router.dashboard.charts import (
    SHAPES,
    UNSERVED,
    Interval,
    Look,
    Mark,
    bar,
    interval_chart,
    legend,
    line_chart,
    nice_top,
)
from router.dashboard.trends import Line

LOOK = Look(str, str, {"ar": 0, "mtp-n3": 1})


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 - our own output


@pytest.mark.parametrize(("value", "top"), [(0, 1), (0.66, 0.8), (1, 1), (37, 40), (101, 150)])
def test_axes_end_at_round_numbers(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def test_gaps_stay_gaps() -> None:
    line = Line("ar", [(0, 1.0), (10, 2.0), (20, None), (30, 3.0)])
    svg = parsed(line_chart([line], (0, 40), LOOK, label="x"))
    assert len(svg.findall(".//polyline")) == 1
    assert len(svg.findall(".//circle")) == 1


def test_marks_outside_the_span_are_left_out_and_text_is_escaped() -> None:
    marks = [Mark(10, "R", "code <restarted>"), Mark(99, "A", "later")]
    svg = parsed(line_chart([], (0, 40), LOOK, label='a "label"', marks=marks))
    titles = [title.text for title in svg.iter("title")]
    assert titles == ["code <restarted>"]
    assert svg.get("aria-label") == 'a "label"'


def test_intervals_say_gain_and_loss_by_sign() -> None:
    rows = [
        Interval("a", 1.1, 1.2, 1.3, "1.20", 1),
        Interval("b", 0.7, 0.8, 0.9, "0.80", 2),
        Interval("c", 0.9, 1.0, 1.1, "1.00", 3),
    ]
    svg = parsed(interval_chart(rows, label="x", show=str))
    signs = [text.text for text in svg.iter("text") if "estimate" in text.get("class", "")]
    assert signs == ["▲", "▼", "◆"]


def test_bars_and_legend() -> None:
    widths = [rect.get("width") for rect in parsed(bar(1.7, 1, "x")).iter("rect")]
    assert widths == ["100", "100.0"]
    assert "mtp-n3" in legend({"mtp-n3": 1})


def test_every_style_has_a_shape_of_its_own_and_a_colour() -> None:
    assert len(set(SHAPES)) == len(SHAPES) == UNSERVED + 1
    sheet = (STATIC / "app.css").read_text(encoding="utf-8")
    assert all(f".line.s{style} " in sheet for style in range(1, UNSERVED + 1))
    assert all(f".dot.s{style}, " in sheet for style in range(1, UNSERVED + 1))
