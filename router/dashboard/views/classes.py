"""Classes x modes: what each gains, how surely, and the parts behind each figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from router.dashboard.figures import CLASSES, DIMENSIONS, PLAIN, drill_down, matrix
from router.dashboard.markup import Markup, el, join
from router.dashboard.page import Context, filters, model_choice, section, table
from router.telemetry.speedups import MIN_ANSWERS
from router.telemetry.stats import CONTEXT_EDGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router.dashboard.figures import MatrixCell, Part


def content(context: Context) -> Markup:
    """The matrix."""
    words = context.words
    head = el("h1", words("view_classes"))
    chooser = filters(context, "/classes", [model_choice(context)]) if _several(context) else None
    note = el("p", words("gain_note"), cls="note")
    return join([head, chooser, matrix_table(context), note])


def _several(context: Context) -> bool:
    return len(context.snapshot.models) > 1


def matrix_table(context: Context) -> Markup:
    """Classes in rows, modes in columns."""
    words, modes = context.words, context.snapshot.modes(context.model)
    if not modes:
        return el("p", words("no_workers"), cls="empty")
    rows = [
        (name, *[_cell(context, cell) for cell in row])
        for name, row in zip(CLASSES, matrix(context.snapshot, context.model), strict=True)
    ]
    caption = f"{words('view_classes')}: {context.model}"
    return el("div", table(caption, [words("class"), *modes], rows), cls="matrix")


def _cell(context: Context, cell: MatrixCell) -> Markup:
    row = cell.row
    kind, main, extra = _headline(context, cell)
    figures = [
        ("acceptance", context.words.percent(row.acceptance if row is not None else None)),
        ("mean_length", context.words.ratio(cell.mean_length)),
        ("decode_speed", context.words.number(row.decode_tps if row is not None else None, 1)),
        ("share", context.words.percent(cell.share)),
        ("answers", context.words.number(row.n if row is not None else 0)),
    ]
    rows = [el("div", el("dt", context.words(n)), el("dd", value)) for n, value in figures]
    values = {
        "data_class": cell.workload_class,
        "data_mode": cell.mode,
        "data_speedup": None if row is None or row.speedup is None else f"{row.speedup:.6f}",
        "data_n": None if row is None else f"{row.n:.0f}",
    }
    return el("div", main, extra, el("dl", rows), cls=f"cell {kind}", **values)


def _headline(context: Context, cell: MatrixCell) -> tuple[str, Markup, Markup | None]:
    """The kind of a cell, its figure and its interval: grey words where nothing is measured."""
    words, row = context.words, cell.row
    if cell.mode == PLAIN:
        return "base", el("p", words("plain"), cls="figure"), None
    if row is None or row.speedup is None or row.ci_low is None or row.ci_high is None:
        return "unmeasured", el("p", words("not_measured"), cls="figure"), _missing(context, cell)
    kind = "gain" if row.ci_low > 1 else "loss" if row.ci_high < 1 else "unsure"
    sign = {"gain": "▲", "loss": "▼", "unsure": "◆"}[kind]
    text = context.link(f"{sign} {words.ratio(row.speedup)} ×", _address(context, cell))
    interval = f"{words.ratio(row.ci_low)} … {words.ratio(row.ci_high)}"
    return kind, el("p", text, cls="figure"), el("p", interval, cls="interval-text")


def _missing(context: Context, cell: MatrixCell) -> Markup:
    """Which side lacks answers."""
    n = cell.row.n if cell.row is not None else 0.0
    plain = cell.row.n_plain if cell.row is not None else 0.0
    name, count = ("few_answers", n) if n < MIN_ANSWERS else ("few_plain", plain)
    text = context.words(name, n=context.words.number(count), min=MIN_ANSWERS)
    return el("p", context.link(text, _address(context, cell)), cls="interval-text")


def _address(context: Context, cell: MatrixCell) -> str:
    path = f"/classes/{quote(cell.workload_class, safe='')}/{quote(cell.mode, safe='')}"
    return f"{path}?{urlencode({'model': context.model})}"


def drill(context: Context, name: str, mode: str) -> Markup:
    """One class in one mode by context, occupancy, language, thinking and kind."""
    words = context.words
    parts = [
        section(
            words(f"by_{dimension}"),
            _parts(
                context,
                dimension,
                drill_down(context.snapshot, context.model, name, mode, dimension),
            ),
        )
        for dimension in DIMENSIONS
    ]
    title = words("drill_title", **{"class": name, "mode": mode})
    back = el("p", context.link(f"← {words('view_classes')}", "/classes"))
    return join([el("h1", title), back, el("p", context.model, cls="note"), parts])


def _parts(context: Context, dimension: str, parts: Sequence[Part]) -> Markup:
    words = context.words
    if not parts:
        return el("p", words("not_measured"), cls="empty")
    heads = [words(n) for n in ("value", "speedup", "interval", "decode_speed", "answers")]
    rows = [_part(context, dimension, part) for part in parts]
    return table(words(f"by_{dimension}"), heads, rows, numeric=(1, 2, 3, 4))


def _part(context: Context, dimension: str, part: Part) -> tuple[Any, ...]:
    words, c = context.words, part.compared
    interval = f"{words.ratio(c.low)} … {words.ratio(c.high)}" if c.low is not None else ""
    speedup = words.ratio(c.ratio) if c.ratio is not None else words("not_measured")
    name = _value(context, dimension, part.value)
    return (name, speedup, interval, words.number(part.decode_tps, 1), words.number(part.n))


def _value(context: Context, dimension: str, value: str) -> str:
    """A bucket's number as what it means."""
    if dimension == "context":
        edges = [0, *CONTEXT_EDGES, None]
        low, high = edges[int(value)], edges[int(value) + 1]
        number = context.words.number
        return f"> {number(low)}" if high is None else f"{number(low)} … {number(high)}"
    if dimension == "occupancy":
        bucket = int(value)
        high_end = 2**bucket
        return str(high_end) if bucket < 2 else f"{high_end // 2 + 1} … {high_end}"
    if dimension == "thinking":
        return context.words("thinking_on" if value == "True" else "thinking_off")
    return value or context.words("none")
