"""Children die with their parent, whatever kills it: the part that runs in the child.

Run as a program it ties itself to its parent and becomes the command it is given, which makes any
binary die with us: `python -I -S launch.py PARENT_PID COMMAND...`. That is why this file imports
nothing of ours. Doing it here, after the fork and in a fresh interpreter, needs no `preexec_fn`,
which is not safe in a process with threads. The signal comes when the *thread* that forked ends:
fork in the thread that runs the event loop, which lives as long as its agent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel to kill this process when its parent ends; leave at once if it has.

    Elsewhere than on Linux nobody can be asked; `orphaned` is for those who can look now and then.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if orphaned(parent_pid):  # it died before the kernel was asked
        os._exit(1)


def orphaned(parent_pid: int) -> bool:
    """Whether the parent that started us is gone: we belong to somebody else then."""
    return os.getppid() != parent_pid


def wrapped(command: tuple[str, ...], parent_pid: int) -> tuple[str, ...]:
    """A command line that runs `command` tied to `parent_pid`."""
    return (sys.executable, "-I", "-S", str(Path(__file__)), str(parent_pid), *command)


def main(argv: list[str]) -> None:
    """Become `argv[1:]`, tied to the parent `argv[0]`.

    Raises:
        OSError: the command cannot be run.
    """
    die_with_parent(int(argv[0]))
    os.execv(argv[1], argv[1:])  # noqa: S606 - the operator's own command


if __name__ == "__main__":
    main(sys.argv[1:])
