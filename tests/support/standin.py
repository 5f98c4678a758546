"""An executable that passes for a llama-server: the simulator behind the real one's flags.

What it does is in the environment: STANDIN is the simulator's script as JSON, STANDIN_DEAF=1 makes
it ignore SIGTERM. Its --help is the embedded engine's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import runpy
import signal
import sys
from pathlib import Path

import uvicorn

from workers.scripted import Script
from workers.simulator import Simulator

ROOT = Path(__file__).resolve().parents[2]


def executable(folder: Path) -> Path:
    """Write the program into a folder; its path."""
    path = folder / "standin-llama-server"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.support.standin import main\nmain(sys.argv[1:])\n"
    )
    path.chmod(0o755)
    return path


class _Deaf(uvicorn.Server):
    def capture_signals(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return contextlib.nullcontext()


def main(argv: list[str]) -> None:
    """Serve until told to stop."""
    if {"--help", "--version"} & set(argv):
        sys.argv = ["llama-server", *argv]
        runpy.run_module("workers.llama_embedded", run_name="__main__")
        return
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--api-key-file", type=Path)
    parser.add_argument("-np", dest="slots", type=int, default=1)
    parser.add_argument("-c", dest="context", type=int, default=4096)
    known, _ = parser.parse_known_args(argv)
    script = Script(
        slots=known.slots,
        context=known.context // known.slots,
        api_key=known.api_key_file.read_text().strip(),
        **json.loads(os.environ.get("STANDIN", "{}")),
    )
    config = uvicorn.Config(
        Simulator(script), host=known.host, port=known.port, log_level="warning", lifespan="off"
    )
    deaf = os.environ.get("STANDIN_DEAF") == "1"
    (_Deaf if deaf else uvicorn.Server)(config).run()
