"""The composition root: the only place that knows every object of the gateway."""

from __future__ import annotations

from router.app.parts import Parts, build
from router.app.serving import GatewayApp, create_app, run_gateway

__all__ = ["GatewayApp", "Parts", "build", "create_app", "run_gateway"]
