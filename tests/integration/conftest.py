"""Things that several integration tests open and must close."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from workers.in_redis import connect


@pytest.fixture
async def closing():
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def client(redis_url, closing):
    """A client of the run's Redis."""
    made = connect(redis_url)
    closing.push_async_callback(made.aclose)
    return made
