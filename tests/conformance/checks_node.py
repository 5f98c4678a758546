"""OpenAI's SDK for Node: one process runs its checks (node/checks.mjs), each is a row here."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conformance.suite import Check, add

if TYPE_CHECKING:
    from tests.conformance.target import Target

NODE = "openai-node"
FOLDER = Path(__file__).parent / "node"
MISSING = "Node.js with npm is not installed (Debian: apt-get install npm)"
# Name, what it says, and whether it is about the gateway only.
ROWS = (
    ("node_chat", "A chat request is answered.", False),
    ("node_stream", "A stream is read as an asynchronous iterator.", False),
    ("node_stream_usage", "Usage comes once, at the end, when asked for.", False),
    ("node_stream_helper", "The stream helper puts the answer together.", False),
    ("node_stream_left_early", "A stream that is left does no harm to the next request.", False),
    ("node_schema", "A JSON schema holds the answer.", False),
    ("node_tool_streamed", "Streamed deltas spell a tool's call.", False),
    ("node_logprobs", "Logprobs are told.", False),
    ("node_text_completion", "A text is continued.", False),
    ("node_responses", "The Responses API answers.", False),
    ("node_models", "The model is in the list.", False),
    ("node_embeddings", "Embeddings that nobody makes are an APIError of status 501.", False),
    ("node_bad_request", "A wrong field is its BadRequestError.", False),
    ("node_unknown_model", "An unknown model is its NotFoundError with the code.", False),
    ("node_headers", "The gateway's headers can be read.", True),
)


def install() -> str:
    """Put the pinned packages beside the script, once; why that is not possible, or nothing."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return MISSING
    if (FOLDER / "node_modules" / "openai").is_dir():
        return ""
    argv = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(argv, cwd=FOLDER, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"npm install failed: {done.stderr[-300:]}"


def _results(t: Target) -> dict[str, Any]:
    """What the process told, run once for a target."""
    if "node" not in t.memo:
        node = shutil.which("node") or "node"
        argv = [node, "checks.mjs", t.v1, t.api_key, t.exact]
        argv += [] if t.is_gateway else ["close"]  # see Target.limits
        done = subprocess.run(
            argv, cwd=FOLDER, capture_output=True, text=True, check=False, timeout=280
        )
        assert done.returncode == 0, done.stderr[-500:]
        t.memo["node"] = json.loads(done.stdout)
    return t.memo["node"]


def _row(name: str) -> Any:
    def run(t: Target) -> Any:
        why = install()
        assert not why, why
        result = _results(t)[name]
        assert result["ok"], result["detail"]
        return result["observed"]

    return run


for _name, _says, _only in ROWS:
    add(Check(_name, NODE, _says, _row(_name), gateway_only=_only))
