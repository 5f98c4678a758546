"""Keeps new requests away from a worker that fails, and lets one try whether it has recovered.

A worker that answers 503 while loading is not failing. One bad request can fail all its neighbours
in a batch, so failures close together are one incident. Pure: time is an argument (monotonic s).
"""

from __future__ import annotations

from typing import Final

BURST_S: Final = 2.0  # llama-server aborts every slot at once on a compute error
WINDOW_S: Final = 60.0
INCIDENTS_TO_OPEN: Final = 3
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0


class Breaker:
    """Closed, open until a time, or half open with one request on trial."""

    __slots__ = ("_incidents", "_on_trial", "_open_until", "_pause_s")

    def __init__(self) -> None:
        self._incidents: list[float] = []
        self._open_until: float | None = None
        self._pause_s = FIRST_PAUSE_S
        self._on_trial = False

    @property
    def closed(self) -> bool:
        """Whether nothing is wrong."""
        return self._open_until is None

    def allows(self, now: float) -> bool:
        """Whether a request may be sent at `now`."""
        if self._open_until is None:
            return True
        return now >= self._open_until and not self._on_trial

    def started(self) -> bool:
        """A request was sent; whether it is the one on trial."""
        self._on_trial = self._open_until is not None
        return self._on_trial

    def succeeded(self) -> None:
        """An answer came: everything is forgiven."""
        self._incidents.clear()
        self._open_until = None
        self._pause_s = FIRST_PAUSE_S
        self._on_trial = False

    def abandoned(self) -> None:
        """The request ended without telling anything about the worker."""
        self._on_trial = False

    def failed(self, now: float, *, certain: bool) -> None:
        """A failure at `now`; `certain` when nobody listens at the worker's address any more."""
        was_trial, self._on_trial = self._on_trial, False
        if not self._is_new(now) and not was_trial:
            if certain and self.closed:
                self._open(now)
            return
        self._incidents = [t for t in self._incidents if now - t < WINDOW_S] + [now]
        if certain or was_trial or len(self._incidents) >= INCIDENTS_TO_OPEN:
            self._open(now)

    def _is_new(self, now: float) -> bool:
        return not self._incidents or now - self._incidents[-1] > BURST_S

    def _open(self, now: float) -> None:
        self._open_until = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
