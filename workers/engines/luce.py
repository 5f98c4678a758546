"""Luce's dflash_server: chain and tree drafting with a DFlash drafter."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from workers.engines.base import EngineMissing, LaunchContext, Routes
from workers.modes import MODES
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workers.capabilities import Capabilities
    from workers.spec import WorkerSpec

_DEFAULT_BUDGET = 22  # nodes of the tree; what its own documentation runs


class Luce:
    """One request at a time, no API key: bind it to loopback."""

    name = "luce"
    routes = Routes(health="/health", props="/props", slots=None)
    features: tuple[str, ...] = ("tools",)

    def command(self, spec: WorkerSpec, path: str) -> tuple[str, ...]:
        """`binary`, else dflash_server on the PATH."""
        wanted = str(spec.binary or "dflash_server")
        found = shutil.which(wanted, path=path)
        if found is None:
            raise EngineMissing(f"{wanted} is not an executable file: set `binary` to yours")
        return (found,)

    def read_capabilities(self, command: tuple[str, ...]) -> None:
        """It cannot be asked."""

    def render_argv(self, spec: WorkerSpec, launch: LaunchContext) -> tuple[str, ...]:
        """`n_max` is the tree's budget, or the width of a chain's verification."""
        return (
            *launch.command,
            str(spec.target),
            *(("--draft", str(spec.draft)) if spec.draft else ()),
            *("--max-ctx", str(spec.context)),
            *self._drafting(spec),
            *("--host", spec.host, "--port", str(launch.port), "--model-name", spec.model),
            *spec.args,
        )

    def problems(self, spec: WorkerSpec, capabilities: Capabilities | None) -> tuple[str, ...]:
        """It serves one request at a time."""
        if spec.slots > 1:
            return (
                f"dflash_server serves one request at a time: set slots to 1, not {spec.slots}",
            )
        return ()

    def parse_timings(self, final: Mapping[str, Any]) -> Timings:
        """It puts them under `usage`."""
        usage = final.get("usage")
        return Timings.from_payload(usage.get("timings") if isinstance(usage, dict) else None)

    def _drafting(self, spec: WorkerSpec) -> tuple[str, ...]:
        flags = MODES[spec.mode].luce
        if flags:
            return (*flags, "--ddtree-budget", str(spec.n_max or _DEFAULT_BUDGET))
        return () if spec.n_max is None else ("--verify-width", str(spec.n_max))
