"""`specroute report`: the dashboard's figures and plots as one HTML file."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.dashboard import settings_or_exit
from workers.options import config_option, state_dir_option

if TYPE_CHECKING:
    from router.dashboard.figures import Snapshot
    from router.dashboard.serving import DashboardSettings

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0}


class Span(click.ParamType):  # type: ignore[type-arg]
    """A length of time such as 90m, 24h or 7d, in seconds."""

    name = "span"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([mhd])", str(value))
        if found is None or float(found[1]) == 0:
            self.fail(f"{value!r} is no length of time: 90m, 24h or 7d", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


@click.command()
@click.option("--since", type=Span(), default="24h", show_default=True, help="90m, 24h, 7d.")
@config_option("The config; what `up` wrote into the state folder if left out.", required=False)
@state_dir_option("The state folder of `up`.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("specroute-report.html"),
    show_default=True,
)
@click.option("--language", type=click.Choice(["en", "ru"]), default="en", show_default=True)
def report(since: float, path: Path | None, state_dir: Path, output: Path, language: str) -> None:
    """Write one self-contained HTML page of figures and plots.

    \b
    Example:
      specroute report --since 24h
      specroute report --since 7d -c specroute.yaml -o week.html
    """
    config = path or state_dir / "tiny.yaml"
    if not config.is_file():
        raise click.UsageError(f"no config at {config}: name one with -c")
    snapshot = asyncio.run(_read(settings_or_exit(config, state_dir)))
    if snapshot.trouble:
        click.echo(f"Redis does not answer: {snapshot.trouble}", err=True)
        sys.exit(1)
    _write(snapshot, since, output, language)
    click.echo(f"wrote {output}")


async def _read(settings: DashboardSettings) -> Snapshot:
    from router.dashboard.serving import build

    dashboard = build(settings)
    try:
        return await dashboard.source.current()
    finally:
        for close in dashboard.on_close:
            await close()


def _write(snapshot: Snapshot, since: float, output: Path, language: str) -> None:
    from router.dashboard.page import Context
    from router.dashboard.report import nearest_range, render
    from router.dashboard.words import Words

    context = Context(snapshot, Words(language), fixed=True)
    output.write_text(render(context, nearest_range(since)), encoding="utf-8")
