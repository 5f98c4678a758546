"""One self-contained HTML page of the dashboard's figures and plots: no script, no fetching."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from router.dashboard.app import STATIC
from router.dashboard.figures import overview
from router.dashboard.happening_words import happenings_table
from router.dashboard.markup import Markup, el, join
from router.dashboard.page import section, trouble
from router.dashboard.trends import RANGES
from router.dashboard.views import advice, classes, classifier, timelines, workers
from router.dashboard.views import overview as front

if TYPE_CHECKING:
    from router.dashboard.page import Context

EVENTS: Final = 100
SHORTEST_S: Final = 600
"""Counts are kept by the minute: of less, the slice that has just begun would be too much."""

LONGEST_S: Final = max(RANGES.values())
METRICS: Final = ("speed", "acceptance", "requests", "ttft")


def render(context: Context, seconds: int) -> Markup:
    """The whole document, of the last `seconds`: SHORTEST_S to LONGEST_S."""
    words, snapshot = context.words, context.snapshot
    begin, end = words.day(snapshot.at - seconds), words.day(snapshot.at)
    body = [
        el("h1", words("report_title")),
        el("p", words("report_span", begin=begin, end=end), cls="note"),
        trouble(context),
        front.health(context),
        front.tiles(context, overview(snapshot, seconds)),
        *_of_models(context, seconds),
        classifier.content(context),
        advice.content(context),
        workers.content(context),
        section(words("events_title"), happenings_table(context, EVENTS)),
    ]
    return _document(context, el("main", join(body)))


def _of_models(context: Context, seconds: int) -> list[Markup]:
    parts = []
    for model in context.snapshot.models:
        one = replace(context, query={"model": model})
        parts += [el("h1", model), front.gains(one), front.traffic(one), classes.matrix_table(one)]
        parts += [timelines.charts(one, metric, seconds) for metric in METRICS]
    return parts


def _document(context: Context, body: Markup) -> Markup:
    style = Markup((STATIC / "app.css").read_text(encoding="utf-8"))
    title = context.words("report_title")
    head = [
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", title),
        el("style", style),
    ]
    lang = context.words.language
    html = el("html", el("head", head), el("body", body), lang=lang, data_theme="auto")
    return join([Markup("<!doctype html>"), html])


def covered(seconds: float) -> int:
    """The span nearest to `seconds` that a report can show."""
    return int(min(max(seconds, SHORTEST_S), LONGEST_S))
