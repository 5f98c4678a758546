"""A server that somebody else runs: attached by its URL, never started or stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workers.engines.base import LaunchContext, Routes
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workers.capabilities import Capabilities
    from workers.spec import WorkerSpec


class External:
    """llama.cpp, vLLM, SGLang or anything OpenAI-compatible; telemetry as far as it offers any."""

    name = "external"
    # The one page that every OpenAI-compatible server has; the others are llama.cpp's, and a 404
    # on them only means that less is known.
    routes = Routes(health="/v1/models", metrics=None)
    features: tuple[str, ...] = ("tools", "grammar", "json_schema", "logprobs", "n")

    def command(self, spec: WorkerSpec, path: str) -> tuple[str, ...]:
        """Nothing to run."""
        return ()

    def read_capabilities(self, command: tuple[str, ...]) -> None:
        """It cannot be asked."""

    def render_argv(self, spec: WorkerSpec, launch: LaunchContext) -> tuple[str, ...]:
        """Nothing to run."""
        return ()

    def problems(self, spec: WorkerSpec, capabilities: Capabilities | None) -> tuple[str, ...]:
        """It must say where it is."""
        return () if spec.url else ("an external worker needs its `url`",)

    def parse_timings(self, final: Mapping[str, Any]) -> Timings:
        """llama.cpp's block where there is one, else the token counts of `usage`."""
        if isinstance(final.get("timings"), dict):
            return Timings.from_payload(final["timings"])
        usage = final.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        renamed = {
            "prompt_n": counts.get("prompt_tokens"),
            "predicted_n": counts.get("completion_tokens"),
        }
        return Timings.from_payload(renamed)
