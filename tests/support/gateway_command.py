"""`specroute gateway` as a user would start it: a process of its own over a small config."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.running import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = """\
redis: {{url: '{url}'}}
models: [{{name: tiny, target: tiny.gguf}}]
workers: [{{name: plain, model: tiny}}]
"""


@contextlib.contextmanager
def gateway_command(
    folder: Path, redis_url: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, whose standard output can be read, and its URL; killed at the end."""
    port = free_port()
    (folder / "c.yaml").write_text(CONFIG.format(url=redis_url))
    argv = ["gateway", "-c", str(folder / "c.yaml"), "--state-dir", str(folder / "state")]
    process = subprocess.Popen(
        [sys.executable, "-m", "router", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"SPECROUTE_SERVER__PORT": str(port), **environment},
    )
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
