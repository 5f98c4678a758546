"""What `specroute check` shows of each worker: its command line, its build, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workers.capabilities import Capabilities, CapabilityError, dialect_of
from workers.config import check_config
from workers.config.problems import Finding, Problem
from workers.engines import EngineMissing, LaunchContext, engine_of
from workers.gpus import inventory
from workers.placement import misplaced

if TYPE_CHECKING:
    from workers.config import Config
    from workers.engines import Engine
    from workers.placement import GPU
    from workers.spec import WorkerSpec

_PORT = 0  # chosen at start, unless the worker names one
_GB = 1e9


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker as it would be started here. An attached one has no argv."""

    name: str
    argv: tuple[str, ...]
    supported: bool
    build: str
    dialect: str
    dialect_because: str
    weights_gb: float | None  # 1e9 bytes of model files; None when they cannot be read
    complaints: tuple[str, ...]


def check_workers(config: Config, path: str) -> tuple[WorkerReport, ...]:
    """Every worker against its program and this host's GPUs.

    Args:
        config: the configuration.
        path: where programs are looked for, as the environment's PATH.
    """
    gpus = inventory(path)
    return tuple(_report(spec, path, gpus) for spec in config.worker_specs())


def check_everything(config: Config, path: str) -> tuple[tuple[WorkerReport, ...], list[Problem]]:
    """The reports, and every problem: of the text, of the files, of the programs."""
    reports = check_workers(config, path)
    problems = list(check_config(config))
    for i, report in enumerate(reports):
        for complaint in report.complaints:
            message, _, fix = complaint.partition(": ")
            finding = Finding(("workers", i), f"worker {report.name!r}: {message}", fix)
            problems.append(config.source.place(finding))
    return reports, problems


def _report(spec: WorkerSpec, path: str, gpus: tuple[GPU, ...]) -> WorkerReport:
    engine = engine_of(spec)
    command, capabilities, missing = _program(spec, engine, path)
    launch = LaunchContext(command, spec.port or _PORT, Path(f"{spec.name}.key"), capabilities)
    complaints = (*missing, *engine.problems(spec, capabilities), *misplaced(spec, gpus))
    dialect, because = dialect_of(spec, capabilities)
    return WorkerReport(
        name=spec.name,
        argv=engine.render_argv(spec, launch),
        supported=not complaints,
        build=capabilities.label if capabilities else "",
        dialect=dialect,
        dialect_because=because,
        weights_gb=_weights_gb(spec),
        complaints=complaints,
    )


def _program(
    spec: WorkerSpec, engine: Engine, path: str
) -> tuple[tuple[str, ...], Capabilities | None, tuple[str, ...]]:
    """The command, what it can do, and what is wrong with it; a stand-in name when missing."""
    try:
        command = engine.command(spec, path)
        return command, engine.read_capabilities(command) if command else None, ()
    except (EngineMissing, CapabilityError) as error:
        return (str(spec.binary or engine.name),), None, (str(error),)


def _weights_gb(spec: WorkerSpec) -> float | None:
    files = [path for path in (spec.target, spec.draft) if path is not None]
    try:
        return sum(path.stat().st_size for path in files) / _GB
    except OSError:
        return None
