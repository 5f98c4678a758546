"""Ends a request whose whole time is over, whatever it waits for: one timer for all, no task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from router.core import UpstreamTimeout

if TYPE_CHECKING:
    from types import TracebackType

    from router.relay.flight import Flight

_TIMER_SLACK: Final = 0.001  # seconds; uvloop's timers count whole milliseconds


class Deadlines:
    """The requests under way and when each must have ended; all may take equally long.

    So they are due in the order in which they began, and one timer, set for the eldest, will do.
    It is not taken back when that one ends: it then finds nobody and is set for the next.
    """

    __slots__ = ("_due", "_loop", "_timer", "seconds")

    def __init__(self, seconds: float = 3600.0) -> None:
        """`seconds` from a request's arrival to its last byte."""
        self.seconds = seconds
        self._due: dict[Deadline, float] = {}  # on the event loop's clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def add(self, one: Deadline, loop: asyncio.AbstractEventLoop) -> None:
        """Watch `one` from now on."""
        if loop is not self._loop:  # a gateway has one loop; whoever begins another starts anew
            self._loop, self._timer = loop, None
            self._due.clear()
        self._due[one] = due = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_at(due, self._on_timer)

    def remove(self, one: Deadline) -> None:
        """It has ended."""
        self._due.pop(one, None)

    def _on_timer(self) -> None:
        self._timer = None
        loop = self._loop
        if loop is None:
            return
        now = loop.time() + _TIMER_SLACK
        for one, due in list(self._due.items()):
            if due > now:
                self._timer = loop.call_at(due, self._on_timer)
                return
            self.remove(one)
            one.end()


class Deadline:
    """A block that may take so long; an answer that is complete by then is not disturbed.

    The flight has failed with the time-out before the block is cancelled, so that whatever the
    cancellation runs through writes down the truth.
    """

    __slots__ = ("_all", "_error", "_flight", "_task")

    def __init__(self, flight: Flight, among: Deadlines) -> None:
        self._flight = flight
        self._all = among
        self._task: asyncio.Task[Any] | None = None
        self._error: UpstreamTimeout | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()  # asked once: each time costs a system call
        self._task = asyncio.current_task(loop)
        self._all.add(self, loop)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Raises UpstreamTimeout in place of the cancellation that was ours."""
        self._all.remove(self)
        if self._error is None or kind is not asyncio.CancelledError or self._task is None:
            return
        if self._task.uncancel() == 0:  # else the client has left as well: that comes first
            raise self._error from None

    def end(self) -> None:
        """The time is over."""
        if self._flight.is_over or self._task is None:
            return
        seconds = self._all.seconds
        self._error = UpstreamTimeout(f"the answer took longer than {seconds:g} seconds")
        self._flight.fail(self._error)
        self._task.cancel()
