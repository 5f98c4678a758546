"""`specroute workers`: list and control the workers of a running gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

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
    verb: str, name: str | None, url: str | None, token: str | None, state_dir: Path, as_json: bool
) -> None:
    """List the workers, or drain, undrain, restart, load or unload the one called NAME.

    \b
    Example:
      specroute workers
      specroute workers list prose
      specroute workers drain prose
    """
    gateway = find_gateway(url, token, state_dir)
    if verb == "list":
        _list(gateway.call("GET", "/ops/workers", holds="workers")["workers"], name, as_json)
        return
    if not name:
        raise click.UsageError(f"`workers {verb}` needs a worker's name; see `workers list`")
    sent = gateway.call("POST", f"/ops/workers/{quote(name, safe='')}/{verb}", holds="verb")
    if as_json:
        print_json(sent)
    else:
        click.echo(f"{verb} sent to {name}")


def _list(rows: list[dict[str, Any]], name: str | None, as_json: bool) -> None:
    """All of them, or the one called `name`."""
    chosen = [row for row in rows if name in (None, row["name"])]
    if name is not None and not chosen:
        there = ", ".join(row["name"] for row in rows) or "none"
        raise click.ClickException(f"no worker named {name!r}; there are: {there}")
    if as_json:
        print_json(chosen)
        return
    columns = ["name", "model", "mode", "state", "slots", "inflight", "restarts", "reason"]
    print_table("workers", columns, [[row.get(column) for column in columns] for row in chosen])
