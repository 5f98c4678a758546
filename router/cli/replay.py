"""`specroute replay`: what another policy would have cost on the traffic of a decision log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from router.cli.output import json_option, print_json, print_table, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from router.simulation.logged import Logged

_LOG = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("logs", type=_LOG, nargs=-1, required=True)
@click.option("--policy", default="learned", show_default=True, help="Name, or module:Name.")
@click.option("--worker", default="", help="The worker of the static policy.")
@click.option("--forecasts", is_flag=True, help="Judge the logged 90 % intervals instead.")
@json_option
def replay(
    logs: tuple[Path, ...], policy: str, worker: str, forecasts: bool, as_json: bool
) -> None:
    """Put the requests of decision LOGS (oldest first) before another policy.

    Only choices that the log leaves open can be judged: exit 1 when they are too few.

    \b
    Example:
      specroute replay .specroute/decisions.jsonl --policy static --worker plain
      specroute replay .specroute/decisions.jsonl --forecasts
    """
    # A policy from elsewhere is built with the worker, and may use it.
    if worker and (forecasts or not (policy == "static" or ":" in policy)):
        raise click.UsageError("--worker is of --policy static: give both or neither")
    if forecasts:
        _forecasts(logs, as_json=as_json)
    else:
        _replay(logs, policy, worker, as_json=as_json)


def _forecasts(logs: tuple[Path, ...], *, as_json: bool) -> None:
    from router.simulation.forecasts import coverage

    found = coverage(_decisions(logs))
    if found is None:
        raise click.ClickException("no answered request with a forecast in the log")
    if as_json:
        print_json(found.as_dict())
    else:
        print_table("90 % forecasts", ["quantity", "value"], found.as_dict().items())


def _replay(logs: tuple[Path, ...], policy: str, worker: str, *, as_json: bool) -> None:
    from router.policy import PolicySettings, build_policy
    from router.simulation.replay import TooLittleEvidence
    from router.simulation.replay import replay as run

    try:
        built = build_policy(policy, PolicySettings(static_worker=worker))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        found = run(_decisions(logs, worker), built).as_dict()
    except TooLittleEvidence as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json(found)
    else:
        title = f"{policy} on the logged requests"
        print_table(title, ["quantity", "value"], ({**found, "interval": _span(found)}).items())


def _decisions(logs: tuple[Path, ...], worker: str = "") -> Iterator[Logged]:
    """The logs' decisions; how many lines were none is said at their end."""
    from router.simulation.logged import Tally, read_decisions

    tally = Tally()
    try:
        yield from read_decisions(logs, worker, tally)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if tally.left_out:
        said = f"{tally.left_out} of {tally.lines} lines are no decision and were left out"
        click.echo(said, err=True)


def _span(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    return f"{readable(low)} to {readable(high)}"
