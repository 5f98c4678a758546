"""The sampled stream of decisions, and one of them in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from classifier import WorkloadClass
from router.dashboard.markup import Markup, el, join
from router.dashboard.page import Context, choice, filters, section, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from router.telemetry.history_store import Entry

PAGE: Final = 50
FIELDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "class": lambda row: str(row["request"].get("class") or ""),
    "worker": lambda row: str(row["outcome"].get("worker") or ""),
    "mode": lambda row: str(row["outcome"].get("mode") or ""),
    "reason": lambda row: str((row["decision"] or {}).get("reason") or ""),
    "outcome": lambda row: str(row["outcome"]["status"]),
}
"""What can be filtered by."""

_PARTS: Final = ("queue", "prefill", "decode", "switch", "swap")


def content(context: Context) -> Markup:
    """Newest first."""
    words = context.words
    entries = context.snapshot.decisions
    matching = [entry for entry in entries if _matches(entry.row, context.query)]
    first = _first(context)
    shown = matching[first : first + PAGE]
    count = words("shown_of", shown=len(matching), all=len(entries))
    body = _list(context, shown) if shown else el("p", _nothing(context), cls="empty")
    return join(
        [
            el("h1", words("view_decisions")),
            _filters(context),
            el("p", f"{count}. {words('sampled_note')}", cls="note"),
            body,
            _pager(context, first, len(matching)),
        ]
    )


def _nothing(context: Context) -> str:
    return context.words("no_matches" if context.snapshot.decisions else "no_traffic")


def _first(context: Context) -> int:
    text = context.query.get("from", "0")
    return int(text) if text.isdigit() and len(text) < 7 else 0


def _matches(row: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    if query.get("id", "") not in row["id"]:
        return False
    return all(query.get(name, "") in ("", of(row)) for name, of in FIELDS.items())


def _filters(context: Context) -> Markup:
    words = context.words
    fields = []
    for name, of in FIELDS.items():
        values = sorted({of(entry.row) for entry in context.snapshot.decisions} - {""})
        options = [("", words("any")), *[(value, value) for value in values]]
        fields.append(choice(words(name), name, options, context.query.get(name, "")))
    given = context.query.get("id", "")
    box = el("input", type="search", name="id", value=given, maxlength=128)
    fields.append(el("label", el("span", words("request_id")), box))
    return filters(context, "/decisions", fields, button="filter")


def _list(context: Context, entries: Sequence[Entry]) -> Markup:
    words = context.words
    heads = [
        words(name)
        for name in (
            "when",
            "class",
            "worker",
            "mode",
            "reason",
            "predicted",
            "actual",
            "tokens",
            "outcome",
        )
    ]
    rows = [_row(context, entry) for entry in entries]
    return table(words("view_decisions"), heads, rows, numeric=(5, 6, 7))


def _row(context: Context, entry: Entry) -> tuple[Any, ...]:
    words, row = context.words, entry.row
    outcome, estimate = row["outcome"], chosen(row)
    return (
        context.link(words.moment(row["at"]), f"/decisions/{quote(entry.id, safe='')}"),
        *[FIELDS[name](row) for name in ("class", "worker", "mode", "reason")],
        words.duration(own_seconds(estimate)) if estimate else words.duration(None),
        words.duration(outcome["total_s"]),
        words.number(outcome["completion_tokens"]),
        outcome["status"],
    )


def _pager(context: Context, first: int, count: int) -> Markup | None:
    links = []
    if first > 0:
        links.append(_page_link(context, "newer", max(0, first - PAGE)))
    if first + PAGE < count:
        links.append(_page_link(context, "older", first + PAGE))
    return el("nav", links, cls="pager", aria_label=context.words("view_decisions"))


def _page_link(context: Context, name: str, first: int) -> Markup:
    query = {**context.query, "from": str(first)}
    return el("a", context.words(name), href=f"/decisions?{urlencode(query)}", cls="button quiet")


def chosen(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The chosen candidate with its estimate, if the policy made one."""
    decision = row["decision"] or {}
    found = (c for c in decision.get("candidates", ()) if c["worker"] == decision["worker"])
    candidate = next(found, None)
    return candidate if candidate is not None and "decode_s" in candidate else None


def own_seconds(candidate: Mapping[str, Any]) -> float:
    """What the caller was predicted to wait."""
    return float(sum(candidate[f"{part}_s"] for part in _PARTS))


def find(context: Context, entry_id: str) -> Entry | None:
    """The decision of that id in the stream."""
    return next((e for e in context.snapshot.decisions if e.id == entry_id), None)


def detail(context: Context, entry: Entry) -> Markup:
    """One decision: request, candidates with their costs, what came of it."""
    words, row = context.words, entry.row
    decision = {k: v for k, v in (row["decision"] or {}).items() if k != "candidates"}
    seen = (row.get("grounds") or {}).get("features")
    return join(
        [
            el("h1", f"{words('request_id')} {row['id']}"),
            el("p", context.link(f"← {words('view_decisions')}", "/decisions")),
            el("p", words.moment(row["at"]), " · ", row["model"], " · ", row["endpoint"]),
            section(words("candidates"), _candidates(context, row)),
            section(words("grounds"), *_grounds(context, row.get("grounds"))),
            el(
                "div",
                section(words("features"), facts(context, row["request"])),
                section(words("seen"), facts(context, seen)) if seen else None,
                section(words("decision"), facts(context, decision)),
                section(words("outcome"), facts(context, row["outcome"])),
                cls="columns",
            ),
        ]
    )


def _candidates(context: Context, row: Mapping[str, Any]) -> Markup:
    words, decision = context.words, row["decision"] or {}
    if not decision.get("candidates"):
        return el("p", words("none"), cls="empty")
    heads = [words("worker"), words("mode"), *[words(f"part_{part}") for part in _PARTS]]
    heads += [words("part_total"), words("forecast_interval"), words("samples"), words("excluded")]
    rows = [_candidate(context, c, decision["worker"]) for c in decision["candidates"]]
    return table(words("candidates"), heads, rows, numeric=range(2, 10))


def _candidate(context: Context, candidate: Mapping[str, Any], winner: str) -> tuple[Any, ...]:
    words, name = context.words, candidate["worker"]
    title = f"✓ {name} ({words('chosen')})" if name == winner else name
    if "decode_s" not in candidate:
        blank = [""] * (len(_PARTS) + 3)
        return (title, candidate["mode"], *blank, candidate.get("excluded_because") or "")
    low, high = candidate["interval_s"]
    return (
        title,
        candidate["mode"],
        *[words.duration(candidate[f"{part}_s"]) for part in _PARTS],
        words.duration(own_seconds(candidate)),
        f"{words.duration(low)} … {words.duration(high)}",
        words.number(candidate["samples"]),
        "",
    )


def _grounds(context: Context, grounds: Mapping[str, Any] | None) -> Sequence[Markup]:
    """What weighed most towards each class."""
    words = context.words
    if not grounds:
        return (el("p", words("none"), cls="empty"),)
    names = [str(name) for name in WorkloadClass]
    rows = [
        (
            el("code", item["name"]),
            *[words.signed(item["weights"].get(name, 0.0)) for name in names],
        )
        for item in grounds["contributions"]
    ]
    weighed = table(words("grounds"), [words("feature"), *names], rows, numeric=range(1, 4))
    return (el("p", words("grounds_note"), cls="note"), weighed)


def facts(context: Context, values: Mapping[str, Any]) -> Markup:
    """Names and values as they are in the decision log."""
    rows = [
        el("div", el("dt", el("code", name)), el("dd", _plain(context, value)))
        for name, value in values.items()
    ]
    return el("dl", rows, cls="facts")


def _plain(context: Context, value: Any) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return context.words("yes" if value else "no")
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(context, item)}" for name, item in value.items())
    if isinstance(value, list):
        return " … ".join(_plain(context, item) for item in value)
    return str(value)
