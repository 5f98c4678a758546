"""The bundled trio: one small target with an MTP head and its DFlash2 drafter, ready to serve."""

from __future__ import annotations

from workers.tiny.cost import COST, NO_COST, Cost
from workers.tiny.trio import TinyTrio, prepare

__all__ = ["COST", "NO_COST", "Cost", "TinyTrio", "prepare"]
