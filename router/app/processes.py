"""Several serving processes under one parent that starts them again and ends them together.

The parent never imports what it does not need, runs no thread and no event loop, and forks: a
restart then costs what the first start did. Children end with their parent, whatever kills it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

from workers.launch import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PAUSE_S: Final = 1.0  # before a process that ended is started again
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


class _Family:
    """The children by pid, and whether it is time to end."""

    def __init__(self, serve: Callable[[int], None]) -> None:
        self._serve = serve
        self.numbers: dict[int, int] = {}  # pid to number
        self.ending = False

    def start(self, number: int) -> None:
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal between the fork and its entry in the book would miss the child, and one that
        # the child got before its own handlers would end its brothers.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        pid = os.fork()
        if pid == 0:
            _run_child(parent, self._serve, number)
        self.numbers[pid] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def end(self, signum: int, frame: FrameType | None = None) -> None:
        """Pass the signal on; each finishes what it has begun."""
        self.ending = True
        for pid in self.numbers:
            os.kill(pid, signal.SIGTERM)


def run_processes(count: int, serve: Callable[[int], None]) -> None:
    """Run `serve(0)` to `serve(count - 1)`, each in a process, until SIGINT or SIGTERM.

    Raises:
        SystemExit: one could not begin; its code is the child's.
    """
    family = _Family(serve)
    for name in _ENDING:
        signal.signal(name, family.end)
    for number in range(count):
        family.start(number)
    began = _now()
    code = 0
    while family.numbers:
        pid, status = os.wait()
        number = family.numbers.pop(pid, -1)
        if family.ending or number < 0:
            continue
        ended = os.waitstatus_to_exitcode(status)
        if ended > 0 and _now() - began < PAUSE_S:  # below 0: somebody killed it
            code = ended
            family.end(signal.SIGTERM)  # it never served: the next one would not either
            continue
        time.sleep(PAUSE_S)
        if not family.ending:
            family.start(number)
    if code:
        raise SystemExit(code)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def _run_child(parent: int, serve: Callable[[int], None], number: int) -> None:
    code = 1
    try:
        for name in _ENDING:
            signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        die_with_parent(parent)
        serve(number)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except (ValueError, RuntimeError, OSError, ImportError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - the logs are closed by now
        code = 2
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
