"""The config of a bare `specroute up`: the bundled tiny model behind three real workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pathlib import Path

_HEADER = """\
# Written by `specroute up` for the bundled tiny model. Copy it as a start for your own:
#   specroute check -c FILE     validates it and prints each worker's command line
#   specroute up -c FILE        serves it
"""


def write_tiny_config(state_dir: Path) -> Path:
    """Prepare the tiny trio below `state_dir` and write the config that serves it.

    Raises:
        ImportError: the extra `local` is not installed.
    """
    from workers.tiny import prepare

    trio = prepare(state_dir / "models")
    # One thread each: on two cores, more threads of three servers only wait for one another.
    # Thinking only where a request asks for it: llama-server's own default is on.
    common = {"model": "tiny", "context": 4096, "slots": 4, "threads": 1, "reasoning": "off"}
    # A prompt is read in pieces of half a second, so that leaving during it is noticed. And one KV
    # cache, because of four with one each only neighbouring slots are decoded together.
    common["args"] = ["--batch-size", "512", "--kv-unified"]
    document = {
        "redis": {"url": "embedded"},
        # The alias: an application built for OpenAI runs with nothing changed but its base URL.
        "models": [{"name": "tiny", "aliases": ["gpt-4o-mini"], "target": str(trio.target)}],
        "workers": [
            {"name": "dflash", "mode": "dflash2-margin", "draft": str(trio.draft), **common},
            {"name": "mtp", "mode": "mtp-n3", **common},
            {"name": "plain", "mode": "ar", **common},
        ],
    }
    path = state_dir / "tiny.yaml"
    path.write_text(_HEADER + yaml.safe_dump(document, sort_keys=False))
    return path
