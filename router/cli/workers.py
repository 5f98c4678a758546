"""`specroute workers`: list and control the workers of a running gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from router.cli.client import find_gateway, gateway_options
from router.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from pathlib import Path

VERBS = ("drain", "undrain", "restart", "load", "unload")


@click.command()
@click.argument("verb", type=click.Choice(["list", *VERBS]), default="list")
@click.argument("name", required=False)
@gateway_options
@json_option
def workers(
    verb: str, name: str | None, url: str, token: str | None, state_dir: Path, as_json: bool
) -> None:
    """List the workers, or drain, undrain, restart, load or unload the one called NAME.

    \b
    Example:
      specroute workers
      specroute workers drain prose
    """
    gateway = find_gateway(url, token, state_dir)
    if verb != "list":
        if not name:
            raise click.UsageError(f"`workers {verb}` needs a worker's name; see `workers list`")
        gateway.call("POST", f"/ops/workers/{name}/{verb}")
        click.echo(f"{verb} sent to {name}")
        return
    answer = gateway.call("GET", "/ops/workers")
    rows = answer["workers"] if isinstance(answer, dict) else answer
    if as_json:
        print_json(rows)
        return
    columns = ["name", "model", "mode", "state", "slots", "inflight", "restarts", "reason"]
    print_table("workers", columns, [[row.get(column) for column in columns] for row in rows])
