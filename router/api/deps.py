"""What endpoints of the web framework get at: services, callers, answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson
from fastapi import Request  # noqa: TC002 - FastAPI reads the annotations of dependencies
from starlette.responses import Response

if TYPE_CHECKING:
    from router.api.services import Services
    from router.core import Principal


class JSONAnswer(Response):
    """A JSON response by orjson."""

    media_type: str | None = "application/json"

    def render(self, content: Any) -> bytes:
        """The body's bytes."""
        return orjson.dumps(content)


def services_of(request: Request) -> Services:
    """What `router.app` put together."""
    return cast("Services", request.app.state.services)


def headers_of(request: Request) -> dict[bytes, bytes]:
    """The request's headers, lower-case; the last of a name wins."""
    return dict(request.scope["headers"])


def principal_of(request: Request) -> Principal:
    """Who asks.

    Raises:
        Unauthorized, Forbidden: nobody who may.
    """
    return services_of(request).edge.authenticator.authenticate(headers_of(request))


def operator_of(request: Request) -> Principal:
    """The operator who asks.

    Raises:
        Unauthorized, Forbidden: nobody who may operate.
    """
    return services_of(request).edge.authenticator.authorize_admin(headers_of(request))
