"""`specroute agent`: the command of the `workers` package under the gateway's name."""

from __future__ import annotations

from workers.__main__ import agent

__all__ = ["agent"]
