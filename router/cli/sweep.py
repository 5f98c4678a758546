"""`specroute sweep`: which draft settings are fastest, by text, length, load and thinking."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from router.cli.measuring import (
    NumberList,
    bench_in,
    draw_or_explain,
    measured_specs,
    measuring_folder,
    measuring_options,
    plot_option,
    progress_bar,
)
from router.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.bench.sweep import Grid

_THINKING = {"as-class": (None,), "off": (False,), "on": (True,), "both": (False, True)}


@click.command()
@measuring_options
@click.option("--n-max", type=NumberList(1, 64), default="", help="Drafted at most: 1,3,5,7.")
@click.option(
    "--p-min",
    type=NumberList(0, 1, whole=False),
    default="",
    help="Drafts end below: 0,0.5,0.75.",
)
@click.option(
    "--length",
    type=NumberList(0, 1_000_000),
    default="0",
    show_default=True,
    help="Words of filler before the question: 0,2500.",
)
@click.option(
    "--concurrency", type=NumberList(1, 256), default="1", show_default=True, help="1,2,4."
)
@click.option(
    "--thinking", type=click.Choice(list(_THINKING)), default="as-class", show_default=True
)
@click.option("--per-class", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=2, show_default=True)
@plot_option
@json_option
def sweep(**options: Any) -> None:
    """Measure a grid of draft settings on real workers, one worker at a time, AR first.

    Every combination of the lists is measured with the same prompts. The output of --json is what
    `specroute advise --measured` reads. Exit 1 when nothing could be measured.

    \b
    Example:
      specroute sweep --quick --n-max 1,3,7
      specroute sweep -c specroute.yaml --worker code --n-max 3,5,7 --p-min 0.5,0.75 --length 0,2500
    """
    from router.bench.sweep import sweep as run
    from router.bench.sweep_report import draw, sweep_report

    with measuring_folder() as folder:
        grid = _grid(options, folder)
        bench = bench_in(folder, options["seed"])
        with progress_bar(grid.total) as advance:
            swept = asyncio.run(run(grid, bench, advance))
        report = sweep_report(swept)
    if options["as_json"]:
        print_json(report)
    else:
        print_sweep(report)
    draw_or_explain(partial(draw, report), options["plot"])
    if not report["rows"]:
        for problem in report["problems"]:
            click.echo(problem, err=True)
        sys.exit(1)


def _grid(options: dict[str, Any], folder: Any) -> Grid:
    from router.bench.sweep import Grid, places_of, settings_of

    specs = measured_specs(options["path"], options["names"], folder, quick=options["quick"])
    thinking = _THINKING[options["thinking"]]
    return Grid(
        settings=settings_of(specs, options["n_max"], options["p_min"]),
        places=places_of(options["length"], options["concurrency"], thinking),
        per_class=options["per_class"],
        rounds=options["rounds"],
        max_tokens=options["max_tokens"],
    )


def print_sweep(report: dict[str, Any]) -> None:
    """The tables of a sweep and what is to be said about it."""
    columns = ["setting", "class", "prompt", "at once", "n", "tok/s", "95 %", "acceptance", "len"]
    rows = [_row(cell) for cell in report["rows"]]
    print_table("decode speed", [*columns, "thought", "x AR"], rows)
    best = [
        [b["class"], b["length"], b["concurrency"], b["setting"], _ratio(b["speedup"]), _yes(b)]
        for b in report["best"]
    ]
    names = ["class", "words before", "at once", "fastest", "x AR [95 %]", "clear"]
    print_table("the fastest setting", names, best)
    overall = [[o["setting"], f"{o['speedup']:.3f}"] for o in report["overall"]]
    print_table("over all cells", ["setting", "x AR"], overall)
    for problem in report["problems"]:
        click.echo(f"note: {problem}", err=True)


def _yes(best: dict[str, Any]) -> str:
    return "yes" if best["clear"] else "no"


def _row(cell: dict[str, Any]) -> list[Any]:
    speed = cell["decode_tps"]
    return [
        cell["setting"],
        cell["class"],
        cell["prompt_tokens"],
        cell["concurrency"],
        cell["n"],
        f"{speed['mean']:.1f}" if speed else "",
        f"{speed['lower']:.1f} to {speed['upper']:.1f}" if speed else "",
        "" if cell["acceptance"] is None else f"{cell['acceptance']:.2f}",
        "" if cell["mean_len"] is None else f"{cell['mean_len']:.2f}",
        f"{cell['thinking_seen']:.0%}",
        f"{cell['speedup']['ratio']:.2f}" if cell["speedup"] else "",
    ]


def _ratio(interval: dict[str, float]) -> str:
    return f"{interval['ratio']:.2f} [{interval['lower']:.2f}, {interval['upper']:.2f}]"
