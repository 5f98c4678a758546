"""The web framework's part: models, ops, documentation, and every path nobody serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from router.api import models, ops
from router.api.openapi import document
from router.core import (
    BadRequest,
    GatewayError,
    MethodNotAllowed,
    NotFound,
    NotSupported,
)

if TYPE_CHECKING:
    from router.api.services import Services


class _App(FastAPI):
    """FastAPI with the document of the whole gateway."""

    def openapi(self) -> dict[str, Any]:
        """See `router.api.openapi`."""
        return document(self)


def build_cold_app(services: Services) -> FastAPI:
    """Everything that is not hot."""
    app = _App(
        title="Specroute",
        version=services.version,
        description="Sends each request to the llama.cpp worker that will finish it soonest.",
    )
    app.state.services = services
    app.include_router(models.routes)
    app.include_router(ops.routes)
    app.add_api_route("/dashboard", dashboard, include_in_schema=False)
    app.add_exception_handler(GatewayError, refuse)
    app.add_exception_handler(HTTPException, refuse_http)
    app.add_exception_handler(Exception, refuse_unforeseen)  # raised again after: it is logged
    return app


async def dashboard(request: Request) -> Response:
    """The dashboard is a process of its own."""
    url = request.app.state.services.dashboard_url
    if url is None:
        raise NotSupported("no dashboard is configured: start one with `specroute dashboard`")
    return RedirectResponse(url, status_code=307)


async def refuse(request: Request, error: Exception) -> Response:
    """A refusal of ours as the contract writes it."""
    refusal = cast("GatewayError", error)
    headers = {name.decode(): value.decode() for name, value in refusal.headers()}
    return Response(refusal.body(), refusal.status, headers, "application/json")


async def refuse_unforeseen(request: Request, error: Exception) -> Response:
    """A mistake of ours in the same form; what went wrong is for the log."""
    return await refuse(request, GatewayError("the gateway failed to answer; its log says why"))


async def refuse_http(request: Request, error: Exception) -> Response:
    """A refusal of the framework in the same form."""
    raised = cast("HTTPException", error)
    path = request.url.path[:200]
    if raised.status_code == 404:
        return await refuse(request, NotFound(f"there is no {path} here"))
    if raised.status_code == 405:
        allow = (raised.headers or {}).get("Allow", "")
        message = f"{path} does not take {request.method}"
        return await refuse(request, MethodNotAllowed(message, allow=allow))
    return await refuse(request, BadRequest(str(raised.detail)))
