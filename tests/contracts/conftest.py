"""The upstream suite runs on both event loops: asyncio's own and the one the gateway uses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Both loops for the upstream suite, asyncio's own for the others."""
    if item.path.name == "test_upstream.py":
        return LOOPS
    return {"asyncio": asyncio.new_event_loop}
