"""The dashboard's pages over HTTP, and its life: build, serve, close."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import structlog
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from router.dashboard.access import COOKIE, SESSION_S, Role, TooManyTries
from router.dashboard.figures import Snapshot
from router.dashboard.markup import Markup, el, join
from router.dashboard.page import VIEWS, Context, document, page, trouble
from router.dashboard.views import (
    advice,
    classes,
    classifier,
    decisions,
    overview,
    timelines,
    workers,
)
from router.dashboard.words import LANGUAGES, Words, language_of, zone_of
from workers.registry import Command, RegistryUnavailable, Verb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.requests import Request

    from router.dashboard.access import Doorkeeper
    from router.dashboard.source import Source
    from workers.clock import Clock
    from workers.registry import Registry

log = structlog.get_logger(__name__)

STATIC: Final = Path(__file__).parent / "static"
CONTENT: Final[Mapping[str, Callable[[Context], Markup]]] = {
    "overview": overview.content,
    "classes": classes.content,
    "timelines": timelines.content,
    "workers": workers.content,
    "decisions": decisions.content,
    "classifier": classifier.content,
    "advice": advice.content,
}
MAX_FORM_BYTES: Final = 4096
_YEAR_S: Final = 31_536_000
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_THEMES: Final = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Every page of one dashboard."""

    source: Source
    registry: Registry
    doorkeeper: Doorkeeper
    clock: Clock
    on_close: tuple[Callable[[], Awaitable[None]], ...] = ()

    def application(self) -> Starlette:
        """The ASGI application."""
        views = [
            Route(path, self._guarded(self._view(name)), methods=["GET"])
            for name, path in VIEWS.items()
        ]
        routes = [
            *views,
            Route("/health", _healthy, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["GET", "POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
            Route("/preferences", self.prefer, methods=["POST"]),
            Route("/classes/{name}/{mode}", self._guarded(self.drill), methods=["GET"]),
            Route("/decisions/{id}", self._guarded(self.decision), methods=["GET"]),
            Route("/workers/{name}/{verb}", self._guarded(self.confirm), methods=["GET"]),
            Route("/workers/{name}/{verb}", self.order, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC), name="static"),
        ]
        handlers: dict[Any, Any] = {404: self.missing, 500: self.broken}
        return Starlette(routes=routes, exception_handlers=handlers, lifespan=self._live)

    @asynccontextmanager
    async def _live(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        for close in self.on_close:
            await close()

    def _view(self, name: str) -> Callable[[Request, Context], Awaitable[Response]]:
        async def view(request: Request, context: Context) -> Response:
            return _answer(request, context, name, CONTENT[name](context))

        return view

    def _guarded(
        self, handler: Callable[[Request, Context], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Signed-in viewers only; others are shown the door, scripts get a 401."""

        async def guarded(request: Request) -> Response:
            role = self._role(request)
            if role is None:
                if "part" in request.query_params:
                    return PlainTextResponse("sign in", status_code=401)
                return RedirectResponse("/sign-in", status_code=303)
            return await handler(request, await self._context(request, role))

        return guarded

    def _role(self, request: Request) -> Role | None:
        return self.doorkeeper.role(request.cookies.get(COOKIE))

    async def _context(self, request: Request, role: Role) -> Context:
        return Context(
            snapshot=await self.source.current(),
            words=_words(request),
            query={k: v for k, v in request.query_params.items() if k != "part"},
            operator=role is Role.OPERATOR,
            theme=_theme(request),
            local_time=request.cookies.get("time") == "local",
        )

    async def drill(self, request: Request, context: Context) -> Response:
        """One class in one mode."""
        name, mode = request.path_params["name"], request.path_params["mode"]
        return _answer(request, context, "classes", classes.drill(context, name, mode))

    async def decision(self, request: Request, context: Context) -> Response:
        """One decision."""
        entry = decisions.find(context, request.path_params["id"])
        if entry is None:
            return await self.missing(request, LookupError())
        return _answer(request, context, "decisions", decisions.detail(context, entry))

    async def confirm(self, request: Request, context: Context) -> Response:
        """Ask before an order."""
        name, verb = request.path_params["name"], _verb(request.path_params["verb"])
        known = any(record.name == name for record in context.snapshot.records)
        if verb is None or not known or not context.operator:
            return await self.missing(request, LookupError())
        return _answer(request, context, "workers", workers.confirmation(context, name, verb))

    async def order(self, request: Request) -> Response:
        """Send a signed order to whoever runs the worker."""
        if self._role(request) is not Role.OPERATOR or not same_origin(request):
            return PlainTextResponse("only an operator may do that", status_code=403)
        name, verb = request.path_params["name"], _verb(request.path_params["verb"])
        known = {record.name for record in (await self.source.current()).records}
        if verb is None or name not in known:
            return await self.missing(request, LookupError())
        told = await self._send(verb, name)
        query = urlencode({"verb": verb.value, "worker": name, **told})
        return RedirectResponse(f"/workers?{query}", status_code=303)

    async def _send(self, verb: Verb, worker: str) -> dict[str, str]:
        command = Command(verb, worker, self.clock.wall(), secrets.token_hex(16))
        try:
            heard = await self.registry.send(command)
        except RegistryUnavailable:
            return {"told": "away"}
        log.info("order", verb=verb.value, worker=worker, heard_by=heard)
        return {"told": "sent" if heard else "unheard", "heard": str(heard)}

    async def sign_in(self, request: Request) -> Response:
        """The door."""
        if request.method == "GET":
            return _door(request, "", 200)
        if not same_origin(request):
            return PlainTextResponse("from another site", status_code=403)
        form = await _form(request)
        view_only = form.get("view_only") == "on"
        try:
            cookie = self.doorkeeper.sign_in(form.get("token", ""), view_only=view_only)
        except TooManyTries:
            return _door(request, "too_many", 429)
        if cookie is None:
            return _door(request, "wrong_token", 401)
        answer = RedirectResponse("/", status_code=303)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            COOKIE, cookie, SESSION_S, httponly=True, samesite="strict", secure=secure
        )
        return answer

    async def sign_out(self, request: Request) -> Response:
        """Forget the session."""
        answer = RedirectResponse("/sign-in", status_code=303)
        if same_origin(request):
            answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    async def prefer(self, request: Request) -> Response:
        """Remember language, time and colours in cookies; back to where the viewer was."""
        if not same_origin(request):
            return PlainTextResponse("from another site", status_code=403)
        form = await _form(request)
        answer = RedirectResponse(_back(request), status_code=303)
        for name in ("language", "time", "theme", "zone"):
            value = form.get(name, "")[:64]
            if value and value.isascii() and value.isprintable():
                answer.set_cookie(name, value, _YEAR_S, httponly=True, samesite="strict")
        return answer

    async def missing(self, request: Request, _error: Exception) -> Response:
        """404."""
        return _plain_page(request, _words(request)("not_found"), "", 404)

    async def broken(self, request: Request, error: Exception) -> Response:
        """500; the log has the reason."""
        log.error("page_failed", path=request.url.path, exc_info=error)
        words = _words(request)
        return _plain_page(request, words("error_title"), words("error_text"), 500)


def _answer(request: Request, context: Context, view: str, content: Markup) -> Response:
    """A whole page, or its content alone for the refreshing script; unchanged content is a 304."""
    if not context.snapshot.at:  # never read: "no worker" and zeros would be guesses
        content = el("h1", context.words(f"view_{view}"))
    body = join([trouble(context), content])
    if "part" not in request.query_params:
        return _html(page(context, view, body))
    tag = f'"{blake2b(body.encode(), digest_size=12).hexdigest()}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    return _html(body, headers={"etag": tag})


def _html(body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    safe = {
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cache-control": "no-store",
    }
    return Response(body, status, headers={**safe, **(headers or {})}, media_type="text/html")


def _door(request: Request, problem: str, status: int) -> Response:
    words = _words(request)
    error = el("p", words(problem), role="alert", cls="banner warn") if problem else None
    token = el(
        "input",
        type="password",
        name="token",
        autocomplete="current-password",
        required=True,
        autofocus=True,
    )
    box = el("input", type="checkbox", name="view_only")
    form = el(
        "form",
        el("label", el("span", words("token")), token),
        el("label", box, " ", el("span", words("view_only")), cls="check"),
        el("button", words("sign_in"), type="submit"),
        method="post",
        action="/sign-in",
    )
    hint = el("p", words("token_hint"), cls="note")
    card = el("section", el("h1", words("title")), error, form, hint, cls="card narrow")
    return _bare(request, words("sign_in"), el("main", card, id="content"), status)


def _plain_page(request: Request, title: str, text: str, status: int) -> Response:
    words = _words(request)
    back = el("p", el("a", words("back"), href="/"))
    card = el("section", el("h1", title), el("p", text) if text else None, back, cls="card narrow")
    return _bare(request, title, el("main", card, id="content"), status)


def _bare(request: Request, title: str, body: Markup, status: int) -> Response:
    context = Context(Snapshot(at=0.0), _words(request), theme=_theme(request))
    return _html(document(context, f"{title} · Specroute", [body]), status)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a small form; nothing of a large one."""
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > MAX_FORM_BYTES:
        return {}
    return dict(parse_qsl((await request.body()).decode("utf-8", "replace")))


async def _healthy(_request: Request) -> Response:
    return PlainTextResponse("ok")


def _verb(text: str) -> Verb | None:
    return Verb(text) if text in {v.value for v in Verb if v.for_operators} else None


def _words(request: Request) -> Words:
    language = request.cookies.get("language", "")
    if language not in LANGUAGES:
        language = language_of(request.headers.get("accept-language", ""))
    local = request.cookies.get("time") == "local"
    return Words(language, zone_of(request.cookies.get("zone", "") if local else ""))


def _theme(request: Request) -> str:
    theme = request.cookies.get("theme", "auto")
    return theme if theme in _THEMES else "auto"


def _back(request: Request) -> str:
    """The page the viewer came from: its path on this very site."""
    parts = urlsplit(request.headers.get("referer", ""))
    if parts.netloc != request.headers.get("host") or not parts.path.startswith("/"):
        return "/"
    path = "/" + parts.path.lstrip("/")  # never another host's name
    return f"{path}?{parts.query}" if parts.query else path


def same_origin(request: Request) -> bool:
    """Whether a form was sent from our own pages: browsers say so, scripts need a cookie anyway."""
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
    return urlsplit(origin).netloc == request.headers.get("host")
