"""Ends a request whose whole time is over, whatever it waits for: one timer, no task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from router.core import UpstreamTimeout

if TYPE_CHECKING:
    from types import TracebackType

    from router.relay.flight import Flight


class Deadline:
    """A block that may take `seconds`; an answer that is complete by then is not disturbed.

    The flight has failed with the time-out before the block is cancelled, so that whatever the
    cancellation runs through writes down the truth.
    """

    __slots__ = ("_error", "_flight", "_seconds", "_task", "_timer")

    def __init__(self, flight: Flight, seconds: float) -> None:
        self._flight = flight
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._error: UpstreamTimeout | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()  # asked once: each time costs a system call
        self._task = asyncio.current_task(loop)
        self._timer = loop.call_later(self._seconds, self._end)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Raises UpstreamTimeout in place of the cancellation that was ours."""
        if self._timer is not None:
            self._timer.cancel()
        if self._error is None or kind is not asyncio.CancelledError or self._task is None:
            return
        if self._task.uncancel() == 0:  # else the client has left as well: that comes first
            raise self._error from None

    def _end(self) -> None:
        if self._flight.is_over or self._task is None:
            return
        self._error = UpstreamTimeout(f"the answer took longer than {self._seconds:g} seconds")
        self._flight.fail(self._error)
        self._task.cancel()
