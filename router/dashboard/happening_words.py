"""Happenings as marks on a chart and as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from router.dashboard.charts import Mark
from router.dashboard.markup import el
from router.dashboard.page import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.dashboard.markup import Markup
    from router.dashboard.page import Context

LETTERS: Final[Mapping[str, str]] = {
    "restart": "R",
    "state": "S",
    "gone": "G",
    "switch": "W",
    "policy": "P",
    "alarm": "A",
    "collapse": "C",
}


def sentence(context: Context, row: Mapping[str, Any]) -> str:
    """One happening in words."""
    values = {**row, "class": row.get("workload_class", "")}
    if row["kind"] == "collapse":
        values["reason"] = words_for_metric(context, row)
    elif values.get("reason"):
        values["reason"] = f"({values['reason']})"
    return context.words(f"event_{row['kind']}", **values).strip()


def words_for_metric(context: Context, row: Mapping[str, Any]) -> str:
    """What collapsed: the collapse's own name of the quantity, in the viewer's language."""
    metric = str(row.get("reason", ""))
    return context.words.known(f"collapse_{metric.replace(' ', '_')}", metric)


def marks(context: Context, name: str = "") -> list[Mark]:
    """Marks for a class's chart: its own happenings and everybody's."""
    return [
        Mark(entry.row["at"], LETTERS[entry.row["kind"]], sentence(context, entry.row))
        for entry in context.snapshot.happenings
        if entry.row.get("workload_class", "") in ("", name)
    ]


def happenings_table(context: Context, count: int, *, since: float = 0.0) -> Markup:
    """The newest happenings."""
    words = context.words
    entries = [e for e in context.snapshot.happenings if e.row["at"] >= since][:count]
    if not entries:
        return el("p", words("no_events"), cls="empty")
    rows = [(words.moment(e.row["at"]), sentence(context, e.row)) for e in entries]
    return table(words("events_title"), [words("when"), words("what")], rows)
