"""What `specroute check` shows of each worker: its command line, its build, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workers.capabilities import Capabilities, CapabilityError, dialect_of
from workers.config import check_config
from workers.config.problems import Finding, Problem
from workers.engines import EngineMissing, LaunchContext, engine_of
from workers.gguf_header import NotGGUF, read_header
from workers.gpus import inventory
from workers.memory import estimate, savings
from workers.placement import misplaced, too_big

if TYPE_CHECKING:
    from workers.config import Config
    from workers.engines import Engine
    from workers.gguf_header import Header
    from workers.placement import GPU
    from workers.spec import WorkerSpec

_PORT = 0  # chosen at start, unless the worker names one
_KEY_FILE = Path("KEY_FILE")  # written at start
_FIX = "correct this worker"

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker as it would be started here. An attached one has no argv."""

    name: str
    argv: tuple[str, ...]
    supported: bool
    build: str
    dialect: str
    dialect_because: str
    memory_gb: float | None  # 1e9 bytes, estimated; None when the files cannot be read
    complaints: tuple[str, ...]
    advice: tuple[str, ...]  # it serves as it is, and would serve better


def check_workers(config: Config, path: str) -> tuple[WorkerReport, ...]:
    """Every worker against its program and this host's GPUs.

    Args:
        config: the configuration.
        path: where programs are looked for, as the environment's PATH.
    """
    gpus = inventory(path)
    asked: dict[Command, Capabilities | None] = {}
    return tuple(_report(spec, path, gpus, asked) for spec in config.worker_specs())


def check_everything(config: Config, path: str) -> tuple[tuple[WorkerReport, ...], list[Problem]]:
    """The reports, and every problem: of the text, of the files, of the programs."""
    reports = check_workers(config, path)
    problems = list(check_config(config))
    for i, report in enumerate(reports):
        for complaint in report.complaints:
            message, _, fix = complaint.partition(": ")
            finding = Finding(("workers", i), f"worker {report.name!r}: {message}", fix or _FIX)
            problems.append(config.source.place(finding))
    return reports, problems


def _report(
    spec: WorkerSpec, path: str, gpus: tuple[GPU, ...], asked: dict[Command, Capabilities | None]
) -> WorkerReport:
    engine = engine_of(spec)
    command, capabilities, missing = _program(spec, engine, path, asked)
    launch = LaunchContext(command, spec.port or _PORT, _KEY_FILE, capabilities)
    needed, tight = _memory(spec, gpus)
    complaints = (*missing, *engine.problems(spec, capabilities), *misplaced(spec, gpus), *tight)
    dialect, because = dialect_of(spec, capabilities)
    return WorkerReport(
        name=spec.name,
        argv=engine.render_argv(spec, launch),
        supported=not complaints,
        build=capabilities.label if capabilities else "",
        dialect=dialect,
        dialect_because=because,
        memory_gb=needed,
        complaints=complaints,
        advice=_advice(spec),
    )


def _program(
    spec: WorkerSpec, engine: Engine, path: str, asked: dict[Command, Capabilities | None]
) -> tuple[Command, Capabilities | None, tuple[str, ...]]:
    """The command, what it can do, and what is wrong with it; a stand-in name when missing."""
    try:
        command = engine.command(spec, path)
        if command not in asked:
            asked[command] = engine.read_capabilities(command) if command else None
    except (EngineMissing, CapabilityError) as error:
        return (str(spec.binary or engine.name),), None, (str(error),)
    return command, asked[command], ()


def _memory(spec: WorkerSpec, gpus: tuple[GPU, ...]) -> tuple[float | None, tuple[str, ...]]:
    """Gigabytes needed, and what the files say against the worker's sizes."""
    if spec.target is None or not spec.managed:
        return None, ()
    try:
        target = read_header(spec.target)
        draft = read_header(spec.draft) if spec.draft is not None else None
    except (OSError, NotGGUF):  # told with the file's line by check_config
        return None, ()
    needed = estimate(spec, target, draft)
    tight = too_big(spec, gpus, needed.total, savings(spec, target, draft))
    return round(needed.gigabytes, 3), (*tight, *_too_long(spec, target))


def _too_long(spec: WorkerSpec, target: Header) -> tuple[str, ...]:
    """llama-server caps a slot at what the model was trained for, unless told how to stretch it."""
    trained = target.of_architecture("context_length")
    stretched = any(word.startswith(("--rope", "--yarn")) for word in spec.args)
    if not isinstance(trained, int) or spec.context <= trained or stretched:
        return ()
    problem = f"a context of {spec.context} tokens is more than the model's own {trained}"
    return (f"{problem}: lower `context`, or add `args: [--rope-scaling, yarn, ...]`",)


def _advice(spec: WorkerSpec) -> tuple[str, ...]:
    """With a KV cache for each slot llama-server decodes only neighbouring slots as one batch.

    Two of four slots, 0 and 2, take as long as one after the other (docs/runbook.md has the
    figures); two slots are always neighbours.
    """
    one_cache = spec.kv == "unified" or {"-kvu", "--kv-unified"} & set(spec.args)
    if spec.engine != "llama-server" or not spec.managed or spec.slots <= 2 or one_cache:
        return ()
    return (
        f"requests in slots that are not neighbours share no step while each of the {spec.slots}"
        " has a KV cache of its own: unless contexts are very long, add `args: [--kv-unified]`"
        " (a request may still use all of `context`)",
    )
