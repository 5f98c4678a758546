"""The composition root: the only place that knows every object of the gateway.

Names are imported on use: the server listens and answers /health before the rest has been imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from router.app.application import GatewayApp, create_app
    from router.app.parts import Parts, build
    from router.app.serving import run_gateway

_HOMES: Final = {
    "GatewayApp": "router.app.application",
    "Parts": "router.app.parts",
    "build": "router.app.parts",
    "create_app": "router.app.application",
    "run_gateway": "router.app.serving",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


__all__ = ["GatewayApp", "Parts", "build", "create_app", "run_gateway"]
