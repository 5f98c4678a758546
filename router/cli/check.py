"""`specroute check`: every problem of a config at once, and each worker's exact command line."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.output import json_option, print_json
from workers.capabilities import Capabilities, CapabilityError, dialect_of, read
from workers.config import Config, Problem, read_config
from workers.engines import EngineMissing, LaunchContext, engine_of

if TYPE_CHECKING:
    from workers.spec import WorkerSpec


@dataclass(frozen=True, slots=True)
class CheckedWorker:
    """One worker as it would be started. `argv` is empty for one that is only attached."""

    name: str
    argv: tuple[str, ...]
    memory_gb: float | None
    supported: bool
    dialect: str
    version: str


@click.command()
@click.option("-c", "--config", "path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--schema", is_flag=True, help="Print the JSON schema of the config file.")
@json_option
def check(path: Path | None, schema: bool, as_json: bool) -> None:
    """Validate a config; print each worker's command line and what its binary supports.

    Exit 0: it can be served. Exit 1: it cannot; every problem is named with line and fix.

    \b
    Example:
      specroute check -c specroute.yaml
      specroute check --schema > specroute.schema.json
    """
    if schema:
        print_json(Config.model_json_schema())
        return
    if path is None:
        raise click.UsageError("say which file: specroute check -c specroute.yaml")
    config, problems = read_config(path, os.environ)  # noqa: TID251 - the config's own reader
    asked: dict[tuple[str, ...], Capabilities] = {}
    workers: list[CheckedWorker] = []
    for index, spec in enumerate(config.worker_specs() if config else ()):
        worker, sentences = _examine(spec, asked)
        workers.append(worker)
        problems += tuple(_placed(path, config, index, text) for text in sentences)
    if as_json:
        rows = [asdict(p) for p in problems]
        print_json({"ok": not problems, "problems": rows, "workers": [asdict(w) for w in workers]})
    else:
        _print(workers, problems)
    sys.exit(1 if problems else 0)


def _examine(
    spec: WorkerSpec, asked: dict[tuple[str, ...], Capabilities]
) -> tuple[CheckedWorker, tuple[str, ...]]:
    """The command line and the sentences that say why it would not run here."""
    if not spec.managed:
        return CheckedWorker(spec.name, (), None, True, "attached", str(spec.url)), ()
    engine = engine_of(spec)
    try:
        command = engine.command(spec, os.environ.get("PATH", ""))  # noqa: TID251 - as a shell would
        if command not in asked:
            asked[command] = read(command)
    except (EngineMissing, CapabilityError) as error:
        return CheckedWorker(spec.name, (), None, False, "unknown", ""), (str(error),)
    capabilities = asked[command]
    # Port and key file are chosen at start.
    launch = LaunchContext(command, spec.port or 0, Path("KEY_FILE"), capabilities)
    sentences = (*engine.problems(spec, capabilities), *_missing_files(spec))
    dialect, why = dialect_of(spec, capabilities)
    argv = engine.render_argv(spec, launch)
    worker = CheckedWorker(
        spec.name, argv, None, not sentences, f"{dialect} ({why})", capabilities.version
    )
    return worker, sentences


def _missing_files(spec: WorkerSpec) -> tuple[str, ...]:
    """Model files that are not on this host (the gateway's host need not have them)."""
    files = {"target": spec.target, "draft": spec.draft}
    return tuple(
        f"{what} file {path} is not there: correct the path, or put the file there"
        for what, path in files.items()
        if path is not None and not path.is_file()
    )


def _placed(path: Path, config: Config | None, index: int, text: str) -> Problem:
    """A sentence about worker `index`, at its line; the fix is what follows the colon."""
    from workers.config.problems import Finding

    message, _, fix = text.partition(": ")
    finding = Finding(("workers", index), message, fix or "correct this worker")
    if config is None:
        return Problem(str(path), None, finding.message, finding.fix)
    return config.source.place(finding)


def _print(workers: list[CheckedWorker], problems: tuple[Problem, ...]) -> None:
    for worker in workers:
        click.secho(worker.name, bold=True)
        if worker.argv:
            click.echo(f"  {shlex.join(worker.argv)}")
        click.echo(f"  dialect {worker.dialect}; version {worker.version or 'not told'}")
    for problem in problems:
        click.echo(str(problem), err=True)
    count = len(problems)
    verdict = "ok" if not count else f"{count} problem{'s' if count > 1 else ''}"
    click.secho(verdict, fg="red" if count else "green")
