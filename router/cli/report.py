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
@click.option(
    "--since",
    type=Span(),
    default="24h",
    show_default=True,
    help="How far back, such as 90m, 24h or 7d; from 10m to 7d.",
)
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
    _require_folder(output)
    snapshot = asyncio.run(_read(settings_or_exit(config, state_dir)))
    if snapshot.trouble:
        click.echo(f"Redis does not answer: {snapshot.trouble}", err=True)
        sys.exit(1)
    _write(snapshot, _span(since), output, language)
    click.echo(f"wrote {output}")


async def _read(settings: DashboardSettings) -> Snapshot:
    from router.dashboard.serving import build

    dashboard = build(settings)
    try:
        return await dashboard.source.current()
    finally:
        for close in dashboard.on_close:
            await close()


def _span(since: float) -> int:
    """What is shown of what was asked for; where they differ, it is said."""
    from router.dashboard.report import covered

    shown = covered(since)
    if shown != since:
        there = "the last 7 days" if shown < since else "the last 10 minutes"
        click.echo(f"a report covers 10m to 7d: this one shows {there}", err=True)
    return shown


def _require_folder(output: Path) -> None:
    """Say at once what would only be found out when all has been read."""
    if not output.parent.is_dir():
        raise click.UsageError(
            f"{output} cannot be written: there is no folder {output.parent}; make it, or name "
            "another file with -o"
        )


def _write(snapshot: Snapshot, seconds: int, output: Path, language: str) -> None:
    from router.dashboard.page import Context
    from router.dashboard.report import render
    from router.dashboard.words import Words

    page = render(Context(snapshot, Words(language), fixed=True), seconds)
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(
            f"{output} cannot be written ({error.strerror}); name another file with -o"
        ) from error
