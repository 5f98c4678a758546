"""What a view is given, and the frame around every view."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from router.dashboard.charts import STYLES, UNSERVED
from router.dashboard.figures import PLAIN
from router.dashboard.markup import Markup, el, join
from router.dashboard.words import LANGUAGE_NAMES, Words
from router.telemetry.metrics import NONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from router.dashboard.figures import Snapshot

VIEWS: Final[Mapping[str, str]] = {
    "overview": "/",
    "classes": "/classes",
    "timelines": "/timelines",
    "workers": "/workers",
    "decisions": "/decisions",
    "classifier": "/classifier",
    "advice": "/advice",
}


@dataclass(frozen=True, slots=True)
class Context:
    """One viewer's request: what there is to show, and how. `operator` may order workers about."""

    snapshot: Snapshot
    words: Words
    query: Mapping[str, str] = field(default_factory=dict)
    operator: bool = False
    theme: str = "auto"
    local_time: bool = False
    fixed: bool = False  # a report: no links, no forms

    @property
    def model(self) -> str:
        """The model asked for, else the first."""
        models = self.snapshot.models
        wanted = self.query.get("model", "")
        return wanted if wanted in models else (models[0] if models else "")

    def styles(self, model: str) -> dict[str, int]:
        """Line styles by mode: plain decoding is always 0, what no worker served is UNSERVED."""
        modes = self.snapshot.modes(model)
        gone = sorted(self.snapshot.seen(model).difference(modes))  # after those that have a worker
        others = [mode for mode in [*modes, *gone] if mode != PLAIN]
        styles = {mode: 1 + i % (STYLES - 1) for i, mode in enumerate(others)}
        return {PLAIN: 0, NONE: UNSERVED} | styles

    def mode_name(self, mode: str) -> str:
        """A mode, or in words that there was none."""
        return self.words("no_worker") if mode == NONE else mode

    def link(self, text: Any, address: str, **attributes: Any) -> Markup:
        """A link, or its text where nothing can be followed."""
        return join([text]) if self.fixed else el("a", text, href=address, **attributes)


def page(context: Context, view: str, content: Markup, *, title: str = "") -> Markup:
    """The whole document around one view."""
    words = context.words
    name = title or words(f"view_{view}")
    body = [
        el("a", words("skip"), href="#content", cls="skip"),
        el("header", _brand(), _navigation(words, view), _settings(context), cls="top"),
        el("p", words("disconnected"), id="lost", role="alert", hidden=True, cls="banner warn"),
        el("main", content, id="content", tabindex="-1", data_view=view),
    ]
    return document(context, f"{name} · {words('title')}", body)


def document(context: Context, title: str, body: Sequence[Markup]) -> Markup:
    """HTML with the style sheet and the script by address."""
    head = [
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", title),
        el("link", rel="stylesheet", href="/static/app.css"),
        el("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        el("script", src="/static/app.js", defer=True),
    ]
    lang, theme = context.words.language, context.theme
    html = el("html", el("head", head), el("body", body), lang=lang, data_theme=theme)
    return join([Markup("<!doctype html>"), html])


def _brand() -> Markup:
    return el("a", "Specroute", href="/", cls="brand")


def _navigation(words: Words, view: str) -> Markup:
    items = [
        el(
            "li",
            el(
                "a",
                words(f"view_{name}"),
                href=address,
                aria_current="page" if name == view else None,
                accesskey=str(number),
            ),
        )
        for number, (name, address) in enumerate(VIEWS.items(), 1)
    ]
    return el("nav", el("ul", items), aria_label=words("views"))


def _settings(context: Context) -> Markup:
    words = context.words
    role = words("role_admin" if context.operator else "role_viewer")
    times = [("utc", words("time_utc")), ("local", words("time_local"))]
    themes = [(name, words(f"theme_{name}")) for name in ("auto", "light", "dark")]
    fields = [
        choice(words("language"), "language", list(LANGUAGE_NAMES.items()), words.language),
        choice(words("time"), "time", times, "local" if context.local_time else "utc"),
        choice(words("theme"), "theme", themes, context.theme),
        el("input", type="hidden", name="zone", value=""),
        el("button", words("apply"), type="submit", cls="quiet"),
    ]
    form = el("form", fields, method="post", action="/preferences", id="preferences")
    leave = el("button", words("sign_out"), type="submit", cls="quiet")
    out = el("form", el("span", role, cls="role"), leave, method="post", action="/sign-out")
    summary = el("summary", words("settings"))
    return el("details", summary, el("div", form, out), cls="settings", open=True)


def choice(label: str, name: str, options: Iterable[tuple[str, str]], chosen: str) -> Markup:
    """A labelled select."""
    items = [el("option", text, value=value, selected=value == chosen) for value, text in options]
    return el("label", el("span", label), el("select", items, name=name))


def filters(
    context: Context, address: str, fields: Sequence[Markup], *, button: str = "apply"
) -> Markup:
    """A form that asks the same page again."""
    if context.fixed:
        return Markup("")
    send = el("button", context.words(button), type="submit")
    return el("form", fields, send, method="get", action=address, cls="filters")


def model_choice(context: Context) -> Markup:
    """A select of models, where there are several."""
    models = context.snapshot.models
    if len(models) < 2:
        return Markup("")
    names = [(model, model) for model in models]
    return choice(context.words("model"), "model", names, context.model)


def section(title: str, *content: Any, name: str = "") -> Markup:
    """A titled part of a page."""
    return el("section", el("h2", title), content, cls=f"card {name}".strip())


def table(
    caption: str,
    heads: Sequence[Any],
    rows: Sequence[Sequence[Any]],
    *,
    numeric: Sequence[int] = (),
) -> Markup:
    """A data table that scrolls by itself when it is wider than the page; keyboards reach it."""

    def cls(index: int) -> str | None:
        return "num" if index in numeric else None

    head = el("tr", [el("th", text, scope="col", cls=cls(i)) for i, text in enumerate(heads)])
    body = [
        el("tr", el("th", row[0], scope="row"), [el("td", c, cls=cls(i)) for i, c in _rest(row)])
        for row in rows
    ]
    inner = el("table", el("caption", caption), el("thead", head), el("tbody", body))
    return el("div", inner, cls="scroll", tabindex="0", role="region", aria_label=caption)


def _rest(row: Sequence[Any]) -> list[tuple[int, Any]]:
    return list(enumerate(row))[1:]


def trouble(context: Context) -> Markup:
    """The banner of figures that are not of now; nothing while all is well."""
    snapshot, words = context.snapshot, context.words
    if not snapshot.trouble:
        return Markup("")
    if not snapshot.at:
        text = words("redis_never", reason=snapshot.trouble)
    else:
        text = words("redis_away", reason=snapshot.trouble, time=words.day(snapshot.at))
    return el("p", text, role="alert", cls="banner warn")
