"""The seam between a worker and the program that serves it: command line, timings, routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from workers.capabilities import Capabilities
    from workers.spec import WorkerSpec
    from workers.timings import Timings


class EngineMissing(RuntimeError):
    """No program of this engine is installed; the message says how to get one."""


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What is only known at start: program, address, key file, and what the program can do."""

    command: tuple[str, ...]
    port: int
    api_key_file: Path
    capabilities: Capabilities | None = None


@dataclass(frozen=True, slots=True)
class Routes:
    """Paths a worker is judged by; None where the engine has no such page."""

    health: str = "/health"
    props: str | None = "/props"
    slots: str | None = "/slots"
    metrics: str | None = "/metrics"


class Engine(Protocol):
    """One server program."""

    name: str
    routes: Routes
    features: tuple[str, ...]  # what requests may ask of it, beside plain text

    def command(self, spec: WorkerSpec, path: str) -> tuple[str, ...]:
        """The program and what precedes its flags, looked for in `path` unless the spec says.

        Raises:
            EngineMissing: it is not there.
        """
        ...

    def read_capabilities(self, command: tuple[str, ...]) -> Capabilities | None:
        """What the program can do; None when it cannot be asked.

        Raises:
            CapabilityError: it should be able to say, and does not.
        """
        ...

    def render_argv(self, spec: WorkerSpec, launch: LaunchContext) -> tuple[str, ...]:
        """The whole command line, program first."""
        ...

    def problems(self, spec: WorkerSpec, capabilities: Capabilities | None) -> tuple[str, ...]:
        """Why this build cannot run this worker, one sentence each; empty when it can."""
        ...

    def parse_timings(self, final: Mapping[str, Any]) -> Timings:
        """Timings of an answer, from its body or its stream's last chunk."""
        ...
