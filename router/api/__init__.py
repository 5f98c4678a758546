"""The HTTP edge: hot endpoints as raw ASGI, the rest in FastAPI, imported when first needed."""

from __future__ import annotations
