"""Work for a client that may leave before it is done, on the ASGI side.

Not compiled with the rest of the request path (`deploy/native/`): a task group waits while it
handles what ended its block. Connections of our own need none, see `router.relay.wire`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class ClientGone(Exception):
    """The client has closed its connection."""


class Tasks(Protocol):
    """Who owns the tasks beside an exchange; they end with it."""

    def create_task(self, coroutine: Coroutine[Any, Any, None], /) -> asyncio.Task[None]:
        """Begin one."""
        ...


async def attended(
    watch: Callable[[], Coroutine[Any, Any, None]],
    work: Callable[[Tasks], Coroutine[Any, Any, None]],
) -> None:
    """Do `work` beside a `watch` that raises ClientGone when the client goes.

    Raises:
        ClientGone: it went, and the work was cut short.
    """
    try:
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(watch())
            try:
                await work(group)
            finally:
                watcher.cancel()
    except BaseExceptionGroup as failed:
        if failed.split(ClientGone)[1] is not None:
            raise
        raise ClientGone from None
