"""`specroute check`: every problem of a config at once, and each worker's exact command line."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.output import json_option, print_json
from workers.checkup import WorkerReport, check_everything
from workers.config import Config, check_servable, read_config

if TYPE_CHECKING:
    from workers.config import Problem


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
    reports: tuple[WorkerReport, ...] = ()
    if config is not None:
        reports, found = check_everything(config, os.environ.get("PATH", ""))  # noqa: TID251
        # Only of a file without mistakes: a misspelt `workers` is one thing, not two.
        problems = tuple(dict.fromkeys((*problems, *found))) or check_servable(config)
    if as_json:
        rows = [asdict(p) for p in problems]
        workers = [asdict(report) for report in reports]
        print_json({"ok": not problems, "problems": rows, "workers": workers})
    else:
        _print(reports, problems)
    sys.exit(1 if problems else 0)


def _print(reports: tuple[WorkerReport, ...], problems: tuple[Problem, ...]) -> None:
    for report in reports:
        click.secho(report.name, bold=True)
        if report.argv:
            click.echo(f"  {shlex.join(report.argv)}")
        click.echo(f"  dialect {report.dialect}: {report.dialect_because}")
        click.echo(f"  build {report.build or 'not told'}; memory {_gigabytes(report)}")
        for advice in report.advice:
            click.secho(f"  advice: {advice}", fg="yellow")
    for problem in problems:
        click.echo(str(problem), err=True)
    count = len(problems)
    verdict = "ok" if not count else f"{count} problem{'s' if count > 1 else ''}"
    click.secho(verdict, fg="red" if count else "green")


def _gigabytes(report: WorkerReport) -> str:
    return "unknown" if report.memory_gb is None else f"{report.memory_gb:.3g} GB"
