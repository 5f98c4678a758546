"""Healthy? What does each mode gain? Where does traffic go? What happened?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from router.dashboard.charts import Interval, bar, interval_chart
from router.dashboard.figures import DAY_S, PLAIN, matrix, overview, saved, shares
from router.dashboard.happening_words import happenings_table
from router.dashboard.markup import Markup, el, join
from router.dashboard.page import Context, choice, filters, model_choice, section
from workers.state import WorkerState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.dashboard.figures import MatrixCell, Overview

WINDOWS: Final[Mapping[str, int]] = {"5m": 300, "1h": 3600, "24h": DAY_S}
EVENTS: Final = 6


def content(context: Context) -> Markup:
    """The first page."""
    figures = overview(context.snapshot, WINDOWS.get(context.query.get("window", ""), 300))
    return join(
        [
            el("h1", context.words("view_overview")),
            health(context),
            _filters(context),
            tiles(context, figures),
            gains(context),
            traffic(context),
            section(context.words("events_title"), happenings_table(context, EVENTS)),
        ]
    )


def health(context: Context) -> Markup:
    """One sentence: is it healthy?"""
    words, records = context.words, context.snapshot.records
    if not records:
        return el("p", words("no_workers"), cls="banner warn", role="status")
    up = sum(record.state.serves for record in records)
    ready = all(record.state is WorkerState.READY for record in records)
    well = ready and bool(context.snapshot.gateways)
    text = words("healthy" if well else "unhealthy", up=up, all=len(records))
    more = [f" {r.name}: {r.state.value}." for r in records if r.state is not WorkerState.READY]
    if not context.snapshot.gateways:
        more.append(f" {words('no_gateway')}")
    sign = "✓ " if well else "⚠ "
    return el("p", sign, text, more, cls=f"banner {'good' if well else 'warn'}", role="status")


def _filters(context: Context) -> Markup:
    names = [(name, name) for name in WINDOWS]
    window = choice(context.words("window"), "window", names, context.query.get("window", "5m"))
    return filters(context, "/", [window, model_choice(context)])


def tiles(context: Context, figures: Overview) -> Markup:
    """The figures of the window, and what was saved in a day."""
    words = context.words
    rows = [
        ("requests_s", words.number(figures.per_second, 2), ""),
        ("goodput", words.number(figures.goodput, 1), ""),
        ("ttft_p50", words.duration(figures.ttft_p50), ""),
        ("ttft_p99", words.duration(figures.ttft_p99), ""),
        ("queue", words.number(figures.waiting), ""),
        ("in_flight", f"{words.number(figures.in_flight)} / {words.number(figures.slots)}", ""),
        ("failed", words.percent(figures.failed_share, 1), ""),
        ("requests", words.number(figures.requests), ""),
        *_saved_rows(context),
    ]
    return el("dl", [_tile(context, *row) for row in rows], cls="tiles")


def _saved_rows(context: Context) -> list[tuple[str, str, str]]:
    words, gain = context.words, saved(context.snapshot, DAY_S)
    if gain.against_plain is None:
        missing = words("not_measured")
        return [("saved_plain", missing, ""), ("saved_best", missing, "")]
    low, high = words.duration(gain.low), words.duration(gain.high)
    covered = words("saved_covered", share=words.percent(gain.covered))
    note = words("saved_best_note", mode=gain.best)
    return [
        ("saved_plain", words.duration(gain.against_plain), f"{low} … {high}; {covered}"),
        ("saved_best", words.duration(gain.against_best), note),
    ]


def _tile(context: Context, name: str, value: str, note: str) -> Markup:
    small = el("dd", note, cls="note") if note else None
    head = el("dt", context.words(name))
    return el("div", head, el("dd", value, cls="value", data_figure=name), small, cls="tile")


def gains(context: Context) -> Markup:
    """The interval plot: every measured class and mode of a model."""
    words = context.words
    cells = [c for row in matrix(context.snapshot, context.model) for c in row if c.mode != PLAIN]
    styles = context.styles(context.model)
    rows = [row for cell in cells if (row := _interval(context, cell, styles)) is not None]
    note = el("p", words("gain_note"), cls="note")
    if not rows:
        return section(words("gain_title"), el("p", words("not_measured"), cls="empty"), note)
    label = "; ".join(f"{row.name} {row.text}" for row in rows)
    return section(words("gain_title"), interval_chart(rows, label=label, show=words.ratio), note)


def _interval(context: Context, cell: MatrixCell, styles: dict[str, int]) -> Interval | None:
    row = cell.row
    if row is None or row.speedup is None or row.ci_low is None or row.ci_high is None:
        return None
    name = f"{cell.workload_class} · {cell.mode}"
    text = f"{context.words.ratio(row.speedup)} ×"
    return Interval(name, row.ci_low, row.speedup, row.ci_high, text, styles.get(cell.mode, 0))


def traffic(context: Context) -> Markup:
    """Shares of the modes by class."""
    styles = context.styles(context.model)
    parts: list[Any] = []
    for name, by_mode in shares(context.snapshot, context.model).items():
        if by_mode:
            items = [_share(context, mode, part, styles) for mode, part in by_mode.items()]
            parts.append(el("div", el("h3", name), el("ul", items, cls="shares"), cls="share"))
    body = el("div", parts, cls="columns") if parts else el("p", _nothing(context), cls="empty")
    return section(context.words("traffic_title"), body)


def _share(context: Context, mode: str, share: float, styles: dict[str, int]) -> Markup:
    text = f"{mode} {context.words.percent(share)}"
    return el("li", el("span", text), bar(share, styles.get(mode, 0), text))


def _nothing(context: Context) -> str:
    """Why no mode has a share: no requests, or none that a worker served."""
    asked = any(s.model == context.model for s in context.snapshot.sums(DAY_S))
    return context.words("none_served" if asked else "no_traffic")
