"""`specroute replay`: what another policy would have cost on the traffic of a decision log."""

from __future__ import annotations

from pathlib import Path

import click

from router.cli.output import json_option, print_json, print_table

_LOG = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("logs", type=_LOG, nargs=-1, required=True)
@click.option("--policy", default="learned", show_default=True, help="Name, or module:Name.")
@click.option("--worker", default="", help="The worker of the static policy.")
@json_option
def replay(logs: tuple[Path, ...], policy: str, worker: str, as_json: bool) -> None:
    """Put the requests of decision LOGS (oldest first) before another policy.

    Only choices that the log leaves open can be judged: exit 1 when they are too few.

    \b
    Example:
      specroute replay .specroute/decisions.jsonl --policy static --worker plain
    """
    from router.policy import PolicySettings, build_policy
    from router.simulation.replay import TooLittleEvidence, read_log
    from router.simulation.replay import replay as run

    try:
        built = build_policy(policy, PolicySettings(static_worker=worker))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        found = run(read_log(logs), built).as_dict()
    except TooLittleEvidence as error:
        raise click.ClickException(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_json(found)
    else:
        print_table(f"{policy} on the logged requests", ["quantity", "value"], found.items())
