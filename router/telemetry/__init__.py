"""What finished requests teach and show: learned state, its sinks, and the figures made of it."""

from __future__ import annotations

from router.telemetry.knowledge import Knowledge

__all__ = ["Knowledge"]
