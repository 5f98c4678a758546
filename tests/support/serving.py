"""An ASGI application on a real socket of this process, for as long as a block lasts."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the test's process keeps its own."""

    def capture_signals(self) -> Any:
        from contextlib import nullcontext

        return nullcontext()


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """The application's base URL; it has ended when the block has."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        server = _Server(config)
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(server.serve([listener]))
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.should_exit = server.force_exit = True
            await serving
