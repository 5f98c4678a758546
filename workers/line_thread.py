"""A thread that writes lines a batch at a time, so that no disk or pipe stops the event loop.

Waking a thread may cost its waker the interpreter's lock and its place on the processor, so it is
woken when lines begin to come and looks by itself until they have ceased.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Line = TypeVar("Line", str, bytes)

CAPACITY: Final = 10_000  # lines
GATHER_S: Final = 0.1  # how long lines gather before they are written together
QUIET_ROUNDS: Final = 10  # looks in vain before it sleeps until woken


class LineThread(Generic[Line]):
    """Hands batches to `write_batch`, which does not raise, in a thread of its own."""

    def __init__(
        self, name: str, write_batch: Callable[[list[Line]], None], *, capacity: int = CAPACITY
    ) -> None:
        self._write_batch: Callable[[list[Line]], None] = write_batch
        self._capacity = capacity
        self._lines: deque[Line] = deque()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self.dropped = 0  # lines that found the queue full
        self._runner = threading.Thread(target=self._run, name=name, daemon=True)
        self._runner.start()

    def write(self, line: Line) -> None:
        """Queue one line; drops it when nobody keeps up."""
        if len(self._lines) >= self._capacity:
            self.dropped += 1
            return
        self._lines.append(line)
        if not self._wake.is_set():
            self._wake.set()

    def close(self, patience_s: float = 2.0) -> None:
        """Write what waits, as far as that is possible in time."""
        self._closing.set()
        self._wake.set()
        self._runner.join(patience_s)

    def _run(self) -> None:
        quiet = 0
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(GATHER_S)
            quiet = 0 if self._lines else quiet + 1
            if quiet > QUIET_ROUNDS:
                quiet = 0
                self._wake.clear()  # before the last look: a later line wakes us again
            self._flush()
        self._flush()

    def _flush(self) -> None:
        batch = [self._lines.popleft() for _ in range(len(self._lines))]
        if batch:
            self._write_batch(batch)
