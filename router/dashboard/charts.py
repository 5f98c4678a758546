"""Charts as SVG: styled by classes, told apart without colour by dashes and shapes. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from router.dashboard.markup import Markup, el, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from router.dashboard.trends import Line

WIDTH, HEIGHT = 460, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 16, 24
STYLES: Final = 8
"""Different line styles in the style sheet: `s0` (plain decoding) to `s7`."""

UNSERVED: Final = STYLES
"""The style beside those of modes: requests that reached no worker."""

SHAPES: Final = ("●", "▲", "■", "◆", "▼", "★", "✚", "✖", "○")


class Mark(NamedTuple):
    """A moment on the time axis."""

    at: float
    letter: str
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """Data to pixels."""

    start: float
    end: float
    top: float
    bottom: float = 0.0

    def x(self, at: float) -> float:
        """Pixels from the left."""
        share = (at - self.start) / max(self.end - self.start, 1e-9)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        share = (value - self.bottom) / max(self.top - self.bottom, 1e-9)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


@dataclass(frozen=True, slots=True)
class Look:
    """How values, times and modes are written, and which style each mode has."""

    show: Callable[[float], str]
    clock: Callable[[float], str]
    styles: dict[str, int]
    name: Callable[[str], str] = str


def line_chart(
    lines: Sequence[Line],
    span: tuple[float, float],
    look: Look,
    *,
    label: str,
    marks: Sequence[Mark] = (),
) -> Markup:
    """Values over time; gaps stay gaps."""
    values = [value for line in lines for _, value in line.points if value is not None]
    frame = Frame(*span, top=nice_top(max(values, default=1.0)))
    inside = [mark for mark in marks if span[0] <= mark.at <= span[1]]
    parts = [
        _grid(frame, look),
        [_mark(frame, mark) for mark in inside],
        [_line(frame, line, look) for line in lines],
    ]
    return _svg(HEIGHT, label, parts)


def legend(styles: Mapping[str, int]) -> Markup:
    """Names beside their line style and shape."""
    items = [
        el("li", _swatch(style), el("span", name), cls="legend-item")
        for name, style in styles.items()
    ]
    return el("ul", items, cls="legend")


def _swatch(style: int) -> Markup:
    line = el("line", x1=0, y1=6, x2=28, y2=6, cls=f"line s{style}")
    shape = el("text", SHAPES[style], x=14, y=10, cls=f"point s{style}")
    return el("svg", line, shape, width=28, height=13, aria_hidden="true", cls="swatch")


def nice_top(value: float) -> float:
    """A round number at or above `value`."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value
    )


def _svg(height: int, label: str, parts: object, cls: str = "chart") -> Markup:
    return el(
        "svg",
        parts,
        viewbox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label=label,
        cls=cls,
    )


def _grid(frame: Frame, look: Look) -> Markup:
    parts = []
    for quarter in range(5):
        value = frame.bottom + (frame.top - frame.bottom) * quarter / 4
        y = frame.y(value)
        parts.append(el("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, cls="grid"))
        parts.append(el("text", look.show(value), x=_LEFT - 5, y=y + 4, cls="tick end"))
    for third in range(4):
        at = frame.start + (frame.end - frame.start) * third / 3
        side = " start" if third == 0 else " end" if third == 3 else " middle"
        parts.append(el("text", look.clock(at), x=frame.x(at), y=HEIGHT - 7, cls=f"tick{side}"))
    return join(parts)


def _mark(frame: Frame, mark: Mark) -> Markup:
    x = frame.x(mark.at)
    return el(
        "g",
        el("title", mark.text),
        el("line", x1=x, x2=x, y1=_TOP, y2=HEIGHT - _BOTTOM, cls="mark"),
        el("text", mark.letter, x=x, y=_TOP - 4, cls="mark-letter middle"),
    )


def _line(frame: Frame, line: Line, look: Look) -> Markup:
    style = look.styles.get(line.name, 0)
    runs = list(_runs(line.points))
    parts = [_run(frame, run, style) for run in runs]
    if runs:
        at, value = runs[-1][-1]
        shape = el(
            "text", SHAPES[style], x=frame.x(at), y=frame.y(value) + 4, cls=f"point s{style}"
        )
        parts.append(shape)
    return el("g", el("title", look.name(line.name)), parts)


def _run(frame: Frame, run: list[tuple[float, float]], style: int) -> Markup:
    points = " ".join(f"{frame.x(at)},{frame.y(value)}" for at, value in run)
    if len(run) == 1:
        at, value = run[0]
        return el("circle", cx=frame.x(at), cy=frame.y(value), r=2, cls=f"dot s{style}")
    return el("polyline", points=points, cls=f"line s{style}")


def _runs(
    points: Sequence[tuple[float, float | None]],
) -> Iterator[list[tuple[float, float]]]:
    """Stretches without a gap."""
    run: list[tuple[float, float]] = []
    for at, value in points:
        if value is not None:
            run.append((at, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


class Interval(NamedTuple):
    """One row of the interval plot."""

    name: str
    low: float
    middle: float
    high: float
    text: str
    style: int


_ROW: Final = 26
_NAMES: Final = 200
_TEXTS: Final = 62


def interval_chart(rows: Sequence[Interval], *, label: str, show: Callable[[float], str]) -> Markup:
    """Estimates with their intervals against the line at 1, on a logarithmic axis."""
    low = min([row.low for row in rows] + [0.8])
    high = max([row.high for row in rows] + [1.25])
    height = _ROW * len(rows) + 26

    def x(value: float) -> float:
        share = math.log(value / low) / math.log(high / low)
        return round(_NAMES + share * (WIDTH - _NAMES - _TEXTS), 1)

    axis = [
        el("line", x1=x(1.0), x2=x(1.0), y1=0, y2=height - 20, cls="one"),
        *[
            el("text", show(value), x=x(value), y=height - 6, cls="tick middle")
            for value in _log_ticks(low, high)
        ],
    ]
    body = [_interval(row, number, x) for number, row in enumerate(rows)]
    return _svg(height, label, [axis, body], cls="chart intervals")


def _log_ticks(low: float, high: float) -> list[float]:
    candidates = (0.1, 0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
    return [value for value in candidates if low <= value <= high]


def _interval(row: Interval, number: int, x: Callable[[float], float]) -> Markup:
    y = _ROW * number + 13
    side = "gain" if row.low > 1 else "loss" if row.high < 1 else "unsure"
    sign = {"gain": "▲", "loss": "▼", "unsure": "◆"}[side]
    return el(
        "g",
        el("text", row.name, x=0, y=y + 4, cls="row-name"),
        el("line", x1=x(row.low), x2=x(row.high), y1=y, y2=y, cls=f"interval {side}"),
        el("text", sign, x=x(row.middle), y=y + 5, cls=f"estimate middle {side}"),
        el("text", row.text, x=WIDTH, y=y + 4, cls="row-text end"),
    )


def bar(share: float, style: int, label: str) -> Markup:
    """A share of 1 as a bar; its text stands beside it."""
    width = round(max(0.0, min(1.0, share)) * 100, 1)
    return el(
        "svg",
        el("rect", x=0, y=0, width=100, height=8, cls="bar-room"),
        el("rect", x=0, y=0, width=width, height=8, cls=f"bar s{style}"),
        viewbox="0 0 100 8",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        cls="bar-chart",
    )
