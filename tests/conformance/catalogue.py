"""Every check there is: importing this module fills the catalogue."""

from __future__ import annotations

from tests.conformance import (
    checks_anthropic,
    checks_cancel,
    checks_chat,
    checks_clients,
    checks_errors,
    checks_formats,
    checks_llama,
    checks_node,
    checks_routing,
    checks_streams,
    checks_surface,
    checks_wire,
)
from tests.conformance.suite import CATALOGUE as CHECKS

MODULES = (
    checks_chat,
    checks_streams,
    checks_formats,
    checks_surface,
    checks_anthropic,
    checks_llama,
    checks_errors,
    checks_routing,
    checks_wire,
    checks_clients,
    checks_node,
    checks_cancel,
)

__all__ = ["CHECKS", "MODULES"]
