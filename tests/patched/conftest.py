"""`make test-engine` builds the patched llama-server and names it; without it nothing is here."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("LLAMA_SERVER_PATCHED") else ["test_*.py"]
