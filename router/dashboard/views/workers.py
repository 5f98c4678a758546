"""Workers: what they are, and the orders they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from router.dashboard.figures import in_flight
from router.dashboard.markup import Markup, el, join
from workers.registry import Verb
from workers.state import WorkerState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.dashboard.page import Context
    from workers.record import WorkerRecord

SIGNS: Final[Mapping[WorkerState, str]] = {
    WorkerState.READY: "✓",
    WorkerState.DEGRADED: "◐",
    WorkerState.STARTING: "…",
    WorkerState.LOADING: "…",
    WorkerState.DRAINING: "⇣",
    WorkerState.BACKOFF: "⚠",
    WorkerState.QUARANTINED: "⚠",
    WorkerState.FAILED: "✖",
    WorkerState.STOPPED: "◼",
}
_DOWN: Final = (
    WorkerState.BACKOFF,
    WorkerState.QUARANTINED,
    WorkerState.FAILED,
    WorkerState.STOPPED,
)
"""No process runs; the record keeps when the last one started."""


def content(context: Context) -> Markup:
    """A card per worker."""
    words = context.words
    records = context.snapshot.records
    note = (
        None if context.operator or context.fixed else el("p", words("read_only_note"), cls="note")
    )
    if not records:
        return join([el("h1", words("view_workers")), el("p", words("no_workers"), cls="empty")])
    cards = [_card(context, record) for record in records]
    return join(
        [el("h1", words("view_workers")), _told(context), note, el("div", cards, cls="cards")]
    )


def _told(context: Context) -> Markup | None:
    """What became of an order; its name comes from a fixed list, never from the address."""
    query, words = context.query, context.words
    name, verb = query.get("told", ""), query.get("verb", "")
    if name not in ("sent", "unheard", "away") or verb not in [
        v.value for v in Verb if v.for_operators
    ]:
        return None
    heard = query.get("heard", "0")
    known = {record.name for record in context.snapshot.records}
    worker = query.get("worker", "") if query.get("worker", "") in known else ""
    text = words(
        f"order_{name}",
        verb=words(f"verb_{verb}"),
        worker=worker,
        n=heard if heard.isdigit() else 0,
    )
    return el("p", text, role="status", cls=f"banner {'good' if name == 'sent' else 'warn'}")


def _card(context: Context, record: WorkerRecord) -> Markup:
    state = record.state
    kind = "good" if state is WorkerState.READY else "unsure" if state.serves else "warn"
    head = el(
        "h2",
        record.name,
        " ",
        el("span", f"{SIGNS[state]} {state.value}", cls=f"state {kind}", data_state=state.value),
    )
    reason = el("p", record.reason, cls="reason") if record.reason else None
    return el(
        "section",
        head,
        reason,
        el("dl", [_row(context, *row) for row in _facts(context, record)], cls="facts"),
        _flags(context, record),
        _log(context, record),
        _orders(context, record),
        cls="card worker",
        id=f"worker-{record.name}",
        data_worker=record.name,
    )


def _facts(context: Context, record: WorkerRecord) -> list[tuple[str, Any]]:
    words = context.words
    mode = record.effective_mode
    if mode != record.mode:
        mode = f"{mode} ({words('asked_mode', mode=record.mode)})"
    busy = in_flight(context.snapshot, record.name)
    loading = record.state in (WorkerState.STARTING, WorkerState.LOADING)
    up = record.state not in _DOWN and record.started_at
    return [
        ("model", record.model),
        ("mode", mode),
        ("slots", f"{busy} / {record.slots}"),
        ("context", words.number(record.context)),
        ("restarts", words.number(record.restarts)),
        ("last_crash", _last_crash(context, record)),
        ("uptime", words.moment(record.started_at) if up else None),
        ("host", f"{record.host} (pid {record.pid})" if record.pid else record.host),
        ("build", record.build),
        ("gpu_memory", _gigabytes(context, record.gpu_memory_bytes)),
        ("memory", _gigabytes(context, record.memory_bytes)),
        ("load", words.percent(record.progress) if loading else None),
    ]


def _last_crash(context: Context, record: WorkerRecord) -> str | None:
    """When and why; it stays to be read, since a restart may take less time than a look."""
    if not record.crashed_at:
        return None
    return f"{context.words.moment(record.crashed_at)}: {record.crash}"


def _row(context: Context, name: str, value: Any) -> Markup | None:
    if value is None or value == "":
        return None
    return el("div", el("dt", context.words(name)), el("dd", value, data_fact=name))


def _gigabytes(context: Context, size: int | None) -> str | None:
    return None if size is None else f"{context.words.number(size / 1e9, 2)} GB"


def _log(context: Context, record: WorkerRecord) -> Markup | None:
    if not record.log_tail:
        return None
    text = el("pre", "\n".join(record.log_tail), tabindex="0")
    return el("details", el("summary", context.words("log_tail")), text)


def _flags(context: Context, record: WorkerRecord) -> Markup | None:
    if not record.argv:
        return None
    text = el("code", " ".join(record.argv))
    return el("details", el("summary", context.words("flags")), el("p", text, cls="flags"))


def _orders(context: Context, record: WorkerRecord) -> Markup | None:
    if not context.operator or context.fixed:
        return None
    links = [
        el("a", context.words(f"verb_{verb.value}"), href=address(record.name, verb), cls="button")
        for verb in verbs(record)
    ]
    return el("p", links, cls="orders")


def address(worker: str, verb: Verb) -> str:
    """Where an order is confirmed."""
    return f"/workers/{quote(worker, safe='')}/{verb.value}"


def verbs(record: WorkerRecord) -> tuple[Verb, ...]:
    """The orders that make sense in a worker's state."""
    if record.state is WorkerState.DRAINING:
        return (Verb.UNDRAIN, Verb.RESTART, Verb.UNLOAD)
    if record.state.serves:
        return (Verb.DRAIN, Verb.RESTART, Verb.UNLOAD)
    if record.state in (WorkerState.STARTING, WorkerState.LOADING):
        return (Verb.RESTART, Verb.UNLOAD)
    return (Verb.LOAD, Verb.RESTART)


def confirmation(context: Context, worker: str, verb: Verb) -> Markup:
    """Are you sure?"""
    words = context.words
    name = words(f"verb_{verb.value}")
    form = el(
        "form",
        el("button", name, type="submit", autofocus=True),
        el("a", words("cancel"), href="/workers", cls="button quiet"),
        method="post",
        action=address(worker, verb),
        cls="confirm",
    )
    title = words("confirm_title", verb=name, worker=worker)
    text = words(f"confirm_{verb.value}", worker=worker)
    return el("section", el("h1", title), el("p", text), form, cls="card narrow")
