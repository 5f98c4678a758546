"""Time lines per class and mode, with marks for restarts, switches and alarms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from router.dashboard.charts import Look, legend, line_chart
from router.dashboard.figures import CLASSES, DAY_S
from router.dashboard.happening_words import happenings_table, marks
from router.dashboard.markup import Markup, el, join
from router.dashboard.page import Context, choice, filters, model_choice, section
from router.dashboard.trends import METRICS, RANGES, lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from router.dashboard.words import Words

EVENTS: Final = 50
_MAX_DIGITS: Final = 5
_KINDS: Final = ("restart", "state", "gone", "switch", "policy", "alarm", "collapse")


def content(context: Context) -> Markup:
    """One chart per class."""
    words = context.words
    metric, range_ = chosen(context)
    since = context.snapshot.at - RANGES[range_]
    marks_key = " · ".join(words(f"marker_{kind}") for kind in _KINDS)
    return join(
        [
            el("h1", words("view_timelines")),
            _filters(context, metric, range_),
            charts(context, metric, RANGES[range_]),
            el("p", f"{words('markers')}: {marks_key}", cls="note"),
            section(words("events_title"), happenings_table(context, EVENTS, since=since)),
        ]
    )


def chosen(context: Context) -> tuple[str, str]:
    """Figure and range asked for, or the usual ones."""
    metric, range_ = context.query.get("metric", ""), context.query.get("range", "")
    return metric if metric in METRICS else "speed", range_ if range_ in RANGES else "1h"


def _filters(context: Context, metric: str, range_: str) -> Markup:
    words = context.words
    metrics = [(name, words(f"metric_{name}")) for name in METRICS]
    fields = [
        choice(words("metric"), "metric", metrics, metric),
        choice(words("window"), "range", [(name, name) for name in RANGES], range_),
        model_choice(context),
    ]
    return filters(context, "/timelines", fields)


def charts(context: Context, metric: str, seconds: int) -> Markup:
    """A chart per class, and one legend."""
    words, styles = context.words, context.styles(context.model)
    names = sorted(
        {
            line.name
            for name in CLASSES
            for line in lines(context.snapshot, context.model, name, metric, seconds)
        },
        key=lambda mode: styles.get(mode, 0),
    )
    if not names:
        return el("p", _nothing(context, seconds), cls="empty")
    parts = [_chart(context, name, metric, seconds) for name in CLASSES]
    title = words(f"metric_{metric}")
    named = {context.mode_name(mode): styles.get(mode, 0) for mode in names}
    return section(title, legend(named), el("div", parts, cls="columns"))


def _nothing(context: Context, seconds: int) -> str:
    """Why there is no line: no requests, or none that tells the figure."""
    names = {s.workload_class for s in context.snapshot.sums(seconds) if s.model == context.model}
    return context.words("chart_empty" if names.intersection(CLASSES) else "no_traffic")


def _chart(context: Context, name: str, metric: str, seconds: int) -> Markup:
    words, snapshot = context.words, context.snapshot
    found = lines(snapshot, context.model, name, metric, seconds)
    show, styles = _shown(context, metric), context.styles(context.model)
    latest = ", ".join(
        f"{context.mode_name(line.name)} {show(line.last)}"
        for line in found
        if line.last is not None
    )
    title = words(f"metric_{metric}")
    latest = latest or words("chart_empty")
    label = words("chart_label", metric=title, latest=latest, **{"class": name})
    look = Look(_tick(context, metric), _clock(words, seconds), styles, context.mode_name)
    span = (snapshot.at - seconds, snapshot.at)
    svg = line_chart(found, span, look, label=label, marks=marks(context, name))
    return el("figure", el("figcaption", name), svg)


def _shown(context: Context, metric: str) -> Callable[[float], str]:
    words = context.words
    if metric == "acceptance":
        return words.percent
    if metric == "ttft":
        return lambda value: words.number(value, 2)
    return lambda value: words.number(value, 0 if value >= 100 or value == int(value) else 1)


def _tick(context: Context, metric: str) -> Callable[[float], str]:
    """A value on the axis, whole: rounded, the steps between the lines would differ."""
    words = context.words
    if metric == "acceptance":
        return lambda value: words.percent(value, _digits(100 * value))
    return lambda value: words.number(value, _digits(value))


def _digits(value: float) -> int:
    return next(
        (d for d in range(_MAX_DIGITS) if math.isclose(round(value, d), value)), _MAX_DIGITS
    )


def _clock(words: Words, seconds: int) -> Callable[[float], str]:
    """A time on the axis: over days the time of day alone names no moment."""
    if seconds > DAY_S:
        return words.day_and_clock
    return lambda at: words.clock(at, seconds=False)
