"""What the classifier makes of the traffic: mix, confidence, drift, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.dashboard.charts import bar
from router.dashboard.markup import Markup, el, join
from router.dashboard.page import Context, section, table
from router.dashboard.trends import (
    MIN_FOR_DRIFT,
    class_figures,
    drift,
    sources,
    versions,
)

if TYPE_CHECKING:
    from router.dashboard.trends import ClassFigures


def content(context: Context) -> Markup:
    """The whole view."""
    words = context.words
    figures = class_figures(context.snapshot)
    if not any(row.requests for row in figures):
        empty = el("p", words("no_traffic"), cls="empty")
        return join([el("h1", words("view_classifier")), empty])
    return join(
        [
            el("h1", words("view_classifier")),
            section(words("mix_title"), _mix(context, figures), _drift(context)),
            section(words("confidence_title"), _confidence(context, figures)),
            section(words("source_title"), _sources(context)),
            section(words("versions_title"), _versions(context)),
        ]
    )


def _mix(context: Context, figures: list[ClassFigures]) -> Markup:
    words = context.words
    names = ("class", "requests", "last_day", "last_hour", "confidence")
    rows = [
        (
            row.workload_class,
            words.number(row.requests),
            words.percent(row.share_day),
            words.percent(row.share_hour),
            words.percent(row.confidence),
        )
        for row in figures
    ]
    return table(words("mix_title"), [words(n) for n in names], rows, numeric=(1, 2, 3, 4))


def _drift(context: Context) -> Markup:
    words, found = context.words, drift(context.snapshot)
    psi = words.ratio(found.psi)
    known = found.requests_hour if found.level == "few_hour" else found.requests_before
    text = words(f"drift_{found.level}", psi=psi, n=words.number(known), min=MIN_FOR_DRIFT)
    level = {"much": "warn", "some": "unsure"}.get(found.level, "plain")
    return el("p", f"{words('drift_title')}: {text}", cls=f"banner {level}")


def _confidence(context: Context, figures: list[ClassFigures]) -> Markup:
    """A row of bars by tenths for each class."""
    parts: list[Any] = []
    for style, row in enumerate(figures, 1):
        if row.requests:
            most = max(row.histogram)
            bars = [_tenth(context, row, tenth, most, style) for tenth in range(3, 10)]
            parts.append(el("div", el("h3", row.workload_class), el("ul", bars, cls="shares")))
    return el("div", parts, cls="columns")


def _tenth(context: Context, row: ClassFigures, tenth: int, most: float, style: int) -> Markup:
    count = row.histogram[tenth]
    share = context.words.percent(count / row.requests)
    text = f"{10 * tenth}–{10 * tenth + 10} %: {share}"
    return el("li", el("span", text), bar(count / most if most else 0.0, style, text))


def _sources(context: Context) -> Markup:
    words, found = context.words, sources(context.snapshot)
    total = sum(found.values()) or 1.0
    rows = [
        (words.known(f"source_{name}", name), words.number(count), words.percent(count / total))
        for name, count in found.items()
    ]
    heads = [words("source_title"), words("requests"), words("share")]
    return table(words("source_title"), heads, rows, numeric=(1, 2))


def _versions(context: Context) -> Markup:
    words = context.words
    rows = [
        (el("code", name), words.number(count), words.moment(last))
        for name, count, last in versions(context.snapshot)
    ]
    heads = [words("version"), words("view_decisions"), words("last_seen")]
    return table(words("versions_title"), heads, rows, numeric=(1,))
