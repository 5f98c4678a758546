"""`specroute advise`: which workers to run for this traffic, and what each plan would gain."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from router.cli.measuring import draw_or_explain, plot_option
from router.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.bench.advise import Plan

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SHOWN = 8


@click.command()
@click.argument("traffic", type=_FILE, nargs=-1, required=True)
@click.option(
    "--measured",
    type=_FILE,
    multiple=True,
    required=True,
    help="Output of `sweep --json` or `bench --json`; repeatable.",
)
@click.option(
    "--workers", "most", type=click.IntRange(1, 4), default=3, show_default=True, help="At most."
)
@click.option(
    "--concurrency", type=click.IntRange(min=1), default=1, show_default=True, help="The load."
)
@click.option("--memory", type=click.FloatRange(min=0.0), help="Gigabytes for all workers.")
@click.option("--seed", default=0, show_default=True)
@plot_option
@json_option
def advise(  # noqa: PLR0913 - one parameter per option
    traffic: tuple[Path, ...],
    measured: tuple[Path, ...],
    most: int,
    concurrency: int,
    memory: float | None,
    seed: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Say which workers to run for the requests in TRAFFIC, from measured speeds.

    TRAFFIC is decision logs of a gateway, or JSON lines of chat bodies. Exit 1 when the
    measurements do not cover it.

    \b
    Example:
      specroute sweep -c specroute.yaml --n-max 3,5,7 --json > sweep.json
      specroute advise .specroute/decisions.jsonl --measured sweep.json --workers 2
    """
    from router.bench.advise import (
        NotMeasured,
        draw_plans,
        read_measurements,
        recommended,
        sentences,
    )
    from router.bench.advise import advise as plans_of
    from router.bench.measured import BadReport, read_report
    from router.bench.traffic import BadTraffic, mix, read_traffic

    try:
        shapes = read_traffic(traffic)
        cells = read_measurements(map(read_report, measured), concurrency)
        rng = random.Random(seed)  # noqa: S311 - intervals, no secret
        plans = plans_of(shapes, cells, most=most, memory_gb=memory, rng=rng)
    except (BadTraffic, BadReport) as error:
        raise click.UsageError(str(error)) from error
    except NotMeasured as error:
        raise click.ClickException(str(error)) from error
    said = sentences(shapes, plans)
    if as_json:
        found = {"requests": len(shapes), "mix": mix(shapes), "text": said}
        best = recommended(plans).as_dict()
        print_json(found | {"recommended": best, "plans": [plan.as_dict() for plan in plans]})
    else:
        _print(plans, said)
    draw_or_explain(partial(draw_plans, plans), plot)


def _print(plans: list[Plan], said: list[str]) -> None:
    columns = ["plan", "s a request", "x AR [95 %]", "x best single [95 %]", "GB"]
    rows = [
        [
            " + ".join(plan.settings),
            f"{plan.seconds:.3f}",
            *(f"{g.mean:.2f} [{g.lower:.2f}, {g.upper:.2f}]" for g in _gains(plan)),
            "" if plan.memory_gb is None else f"{plan.memory_gb:.2f}",
        ]
        for plan in plans[:_SHOWN]
    ]
    print_table("plans, the fastest first", columns, rows)
    for sentence in said:
        click.echo(sentence)


def _gains(plan: Plan) -> tuple[Any, Any]:
    return plan.vs_ar, plan.vs_best_single
