"""Everything a start needs, gathered before anything is started: program, port, key, files."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workers.backoff import Backoff
from workers.capabilities import Capabilities, CapabilityError
from workers.engines import LaunchContext
from workers.keys import worker_api_key
from workers.process import free_port
from workers.watchdog import Patience

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping
    from pathlib import Path

    from workers.clock import Clock
    from workers.engines import Engine
    from workers.spec import WorkerSpec

# Of the agent's environment: settings and secrets of ours that no worker needs.
_OURS = "SPECROUTE_"
_ALMOST = 0.99  # progress until the worker itself says that it is loaded


class Unusable(RuntimeError):
    """The worker cannot be started as configured; the message is one sentence."""


@dataclass(slots=True)
class Known:
    """What programs were found to be able to do; asked once per agent."""

    capabilities: dict[tuple[str, ...], Capabilities | None] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Host:
    """What the workers of one agent share. Times in seconds."""

    name: str
    state_dir: Path
    cluster_secret: str
    environ: Mapping[str, str]
    clock: Clock
    rng: random.Random
    backoff: Backoff = field(default_factory=Backoff)
    drain_timeout: float = 30.0
    stop_timeout: float = 5.0
    probe_timeout: float = 300.0  # a large model on a CPU needs a minute for 64 tokens
    patience: Patience = field(default_factory=Patience)
    known: Known = field(default_factory=Known)


@dataclass(frozen=True, slots=True)
class Launch:
    """One start, ready to be made."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    url: str
    api_key: str
    log_path: Path
    model_bytes: int
    version: str

    def progress(self, resident_bytes: int | None) -> float:
        """The share of the model files that is in memory: the server itself tells no progress."""
        if not resident_bytes or not self.model_bytes:
            return 0.0
        return min(_ALMOST, round(resident_bytes / self.model_bytes, 2))


async def prepare(spec: WorkerSpec, engine: Engine, host: Host) -> Launch:
    """Find the program, check the worker against it, choose a port, write the key file.

    Raises:
        Unusable: a missing file, a flag the program does not know.
        EngineMissing: no program.
        OSError: the state folder cannot be written.
    """
    command = engine.command(spec, host.environ.get("PATH", ""))
    model_bytes = sum(_size(path) for path in (spec.target, spec.draft) if path is not None)
    capabilities = await _capabilities(engine, command, host.known)
    problems = engine.problems(spec, capabilities)
    if problems:
        raise Unusable("; ".join(problems))
    port = spec.port or free_port(spec.host)
    key = worker_api_key(host.cluster_secret, spec.name)
    context = LaunchContext(command, port, _key_file(spec, host, key), capabilities)
    return Launch(
        argv=engine.render_argv(spec, context),
        env=_environment(spec, host),
        url=f"http://{f'[{spec.host}]' if ':' in spec.host else spec.host}:{port}",
        api_key=key,
        log_path=host.state_dir / "logs" / "workers" / f"{spec.name}.log",
        model_bytes=model_bytes,
        version=capabilities.label if capabilities else "",
    )


def key_path(state_dir: Path, worker: str) -> Path:
    """Where a worker's key is kept for its llama-server to read."""
    return state_dir / "keys" / f"{worker}.key"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from error


async def _capabilities(
    engine: Engine, command: tuple[str, ...], known: Known
) -> Capabilities | None:
    async with known.lock:
        if command not in known.capabilities:
            try:
                found = await asyncio.to_thread(engine.read_capabilities, command)
            except CapabilityError as error:
                raise Unusable(str(error)) from error
            known.capabilities[command] = found
        return known.capabilities[command]


def _key_file(spec: WorkerSpec, host: Host, key: str) -> Path:
    """The key in a file only we can read: never in an argv, which every user of the host sees."""
    path = key_path(host.state_dir, spec.name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_file() and path.read_text() == f"{key}\n":
        return path  # nothing to write: a full disk need not matter
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(key + "\n")
    return path


def _environment(spec: WorkerSpec, host: Host) -> Mapping[str, str]:
    inherited = {k: v for k, v in host.environ.items() if not k.startswith(_OURS)}
    return inherited | dict(spec.env)
