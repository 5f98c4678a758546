"""Waiting for what the event loop will bring about, with an end to patience."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


async def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Return once `condition()` holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)
