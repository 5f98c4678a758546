"""The scripted stand-in of the tests as an engine: workers/simulator.py in its own process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from workers.engines.base import LaunchContext, Routes
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workers.capabilities import Capabilities
    from workers.spec import WorkerSpec


class Simulated:
    """`args` are the simulator's own flags."""

    name = "simulated"
    routes = Routes()
    features: tuple[str, ...] = ("tools", "grammar", "json_schema", "logprobs", "n")

    def command(self, spec: WorkerSpec, path: str) -> tuple[str, ...]:
        """This Python."""
        return (sys.executable, "-P", "-m", "workers.simulator")

    def read_capabilities(self, command: tuple[str, ...]) -> None:
        """It cannot be asked."""

    def render_argv(self, spec: WorkerSpec, launch: LaunchContext) -> tuple[str, ...]:
        """Address, slots, mode and key like the real one's."""
        return (
            *launch.command,
            *("--host", spec.host, "--port", str(launch.port)),
            *("--api-key-file", str(launch.api_key_file), "-np", str(spec.slots)),
            *("-c", str(spec.context), "--mode", spec.mode),
            *spec.args,
        )

    def problems(self, spec: WorkerSpec, capabilities: Capabilities | None) -> tuple[str, ...]:
        """It plays any part."""
        return ()

    def parse_timings(self, final: Mapping[str, Any]) -> Timings:
        """Like llama-server's."""
        return Timings.from_payload(final.get("timings"))
