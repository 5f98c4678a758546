"""The bundled trio: one small target with an MTP head and its DFlash2 drafter, ready to serve."""

from __future__ import annotations

from workers.tiny.trio import COST_LAYERS, TinyTrio, prepare

__all__ = ["COST_LAYERS", "TinyTrio", "prepare"]
