"""The command line: one file per command, loaded only when it is called.

Importing every command would cost seconds (fastapi, scikit-learn, SimPy), so the group knows names
and one-line helps, and imports on use.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Mapping[str, tuple[str, str]] = {
    "up": ("router.cli.up:up", "Everything in one: Redis, workers, gateway."),
    "gateway": ("router.cli.gateway:gateway", "The gateway alone, stateless."),
    "agent": ("router.cli.agent:agent", "Run and supervise workers on this host."),
    "dashboard": ("router.cli.dashboard:dashboard", "The ops dashboard alone, reading Redis."),
    "report": ("router.cli.report:report", "One HTML page of figures and plots."),
    "check": ("router.cli.check:check", "Validate a config; print each worker's command line."),
    "route": ("router.cli.route:route", "The routing decision for a chat body, nothing generated."),
    "workers": ("router.cli.workers:workers", "List and control the workers of a gateway."),
    "keys": ("router.cli.keys:keys", "Make, list and revoke API keys."),
    "classifier": ("router.cli.classifier:group", "Train, evaluate and explain the classifier."),
    "bench": ("router.cli.bench:bench", "Measure modes side by side, and routing against each."),
    "sweep": ("router.cli.sweep:sweep", "Draft settings on real workers: which is fastest where."),
    "advise": ("router.cli.advise:advise", "Which workers to run for this traffic."),
    "audit": ("router.cli.audit:audit", "Greedy outputs of drafting workers against AR."),
    "calibrate": ("router.cli.calibrate:calibrate", "Ten guided minutes to a measured config."),
    "simulate": ("router.cli.simulate:simulate", "A fleet and a policy by discrete events."),
    "replay": ("router.cli.replay:replay", "A decision log through another policy."),
}


class LazyGroup(click.Group):
    """A click group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the catalogue."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; None when there is no such name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of `--help`, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _how_built() -> str:
    """Said with the version: whether `deploy/native` compiled the request path."""
    policy = Path(__file__).parents[1] / "policy"
    return " (compiled)" if any(policy.glob("cost.*.so")) else ""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__ + _how_built(), prog_name="specroute")
def root() -> None:
    """Route each LLM request to the drafting mode that finishes it soonest.

    \b
    Example:
      specroute up                     # tiny model, three real workers, no GPU
      specroute up -c specroute.yaml   # your models
    """


def main() -> None:
    """Entry point of the `specroute` script; Ctrl-C ends with the shell's usual 130."""
    try:
        # Where a command ends by click's `Exit`, click returns the status instead of raising.
        status = root(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    sys.exit(status)
