"""Keeps a waiting stream alive: after ten seconds it is opened early and sent comments.

Opening early gives up the status code, which is why it comes so late (contract, section 6).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from router.relay.client import stream_headers

if TYPE_CHECKING:
    from router.relay.attended import Tasks
    from router.relay.client import Client
    from router.relay.flight import Flight

KEEP_ALIVE_S: Final = 10.0
COMMENT: Final = b": waiting\n\n"


class KeepAlive:
    """One timer per waiting stream; a task, the request's own, only once it fires."""

    __slots__ = ("_client", "_every_s", "_flight", "_task", "_tasks", "_timer")

    def __init__(
        self,
        tasks: Tasks,
        client: Client,
        flight: Flight,
        every_s: float | None = None,
    ) -> None:
        self._tasks = tasks
        self._client = client
        self._flight = flight
        self._every_s = KEEP_ALIVE_S if every_s is None else every_s
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def arm(self) -> None:
        """Start waiting; only for requests that are streams."""
        if self._flight.request.stream:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._every_s, self._begin)

    def stop(self) -> None:
        """The answer is coming, or the request has ended."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._tasks.create_task(self._run())

    async def _run(self) -> None:
        await self._client.start(200, stream_headers(self._flight.headers()))
        while True:
            await self._client.write(COMMENT)
            await asyncio.sleep(self._every_s)
