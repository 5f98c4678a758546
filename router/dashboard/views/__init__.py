"""One file per view; each has `content(context)`, a pure function to HTML."""

from __future__ import annotations
