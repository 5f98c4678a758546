"""One `up` for each state folder: the lock that a second one meets.

A lock of the kernel, so that nothing stale is left by a process that was killed. Its descriptor is
closed on exec: no child holds the lock, and what survives its parent is found by its Redis.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from router.cli.kept_secrets import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAME = "lock"


class FolderInUse(click.ClickException):
    """Another process serves from this state folder; the message names it."""


@contextmanager
def held_folder(path: Path) -> Iterator[Path]:
    """The state folder at `path`, made if need be and ours alone until the end.

    Raises:
        FolderInUse: another `up` or `bench` has it.
        click.UsageError: there can be no such folder.
    """
    folder = private_folder(path)
    try:
        descriptor = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise click.UsageError(
            f"the state folder {folder} cannot be written ({error.strerror}); "
            "choose another with --state-dir"
        ) from error
    try:
        _lock(descriptor, folder)
        yield folder
    finally:
        os.close(descriptor)  # the file stays: removing it could part two that wait for it


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        holder = f"pid {pid}" if pid else "another process"
        raise FolderInUse(
            f"the state folder {folder} is in use by {holder}; "
            "end it or choose another with --state-dir"
        ) from error
    except OSError as error:
        raise click.UsageError(
            f"the state folder {folder} cannot be locked ({error.strerror}); "
            "choose one on a local disk with --state-dir"
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
