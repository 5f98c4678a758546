"""`specroute simulate`: the serving policy on measured profiles, beside oracle and single arms."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.extras import needs
from router.cli.measuring import draw_or_explain, plot_option
from router.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from router.simulation.cells import ProfileResult
    from router.simulation.report import Check

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--cells", type=_FILE, help="CSV of measured profiles.")
@click.option(
    "--fleet",
    type=_FILE,
    callback=needs("simpy"),
    help="YAML of a whole fleet, its traffic and its troubles.",
)
@click.option("--policy", multiple=True, help="With --fleet: this one only, without its rivals.")
@click.option("--scenarios", is_flag=True, help="Load crossover, chats and factor model instead.")
@click.option("--requests", type=click.IntRange(min=10), default=600, show_default=True)
@click.option("--seeds", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--check", is_flag=True, help="Exit 1 if a figure misses the bar.")
@plot_option
@json_option
def simulate(  # noqa: PLR0913 - one parameter per option
    cells: Path | None,
    fleet: Path | None,
    policy: tuple[str, ...],
    scenarios: bool,
    requests: int,
    seeds: int,
    jobs: int,
    check: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Run the learned policy on measured profiles or a whole fleet, beside oracle and controls.

    \b
    Example:
      specroute simulate --cells profiles.csv --requests 600 --seeds 20
      specroute simulate --fleet deploy/simulation/fleet.yaml --plot fleet.png
      specroute simulate --fleet deploy/simulation/large-fleet.yaml --policy learned
      specroute simulate --scenarios --seeds 10
    """
    if policy and fleet is None:
        raise click.UsageError("--policy is of --fleet FILE: the others compare the learned policy")
    if plot is not None and scenarios:
        raise click.UsageError("--scenarios draws no plot: leave --plot out")
    if fleet is not None:
        _fleet(fleet, policy, plot, as_json=as_json)
    elif scenarios:
        _scenarios(seeds, check=check, as_json=as_json)
    elif cells is None:
        raise click.UsageError("give --cells FILE, --fleet FILE or --scenarios")
    else:
        _cells(cells, (requests, seeds, jobs), plot, check=check, as_json=as_json)


def _fleet(path: Path, only: Sequence[str], plot: Path | None, *, as_json: bool) -> None:
    from router.policy import build_policy
    from router.simulation import fleet_report
    from router.simulation.fleet_plan import BadFleet, read_fleet

    try:
        plan = read_fleet(path)
        for name in only:
            build_policy(name)
    except (BadFleet, ValueError) as error:
        raise click.UsageError(str(error)) from error
    runs = fleet_report.simulate_policies(plan, only) if only else fleet_report.simulate_fleet(plan)
    results = list(runs)
    found = fleet_report.fleet_as_dict(plan, results)
    if as_json:
        print_json(found)
    else:
        columns = ["policy", "mean s", "p99 s", "vs oracle", "tok/s", "retries"]
        print_table("fleet", columns, map(_fleet_row, found["results"]))
    draw_or_explain(partial(fleet_report.plot_fleet, results), plot)


def _fleet_row(row: Mapping[str, object]) -> Sequence[object]:
    keys = ("name", "mean_seconds", "p99_seconds", "vs_oracle", "tokens_per_second", "retries")
    return tuple(row[key] for key in keys)


def _scenarios(seeds: int, *, check: bool, as_json: bool) -> None:
    from router.simulation.scenarios import checks, summary

    found = summary(range(seeds))
    rows = checks(found)
    if as_json:
        print_json(found | {"checks": [row.as_dict() for row in rows]})
    else:
        print_table("scenarios", ["quantity", "reached"], found.items())
        _print_bar(rows)
    _judge(rows, check=check)


def _judge(rows: Iterable[Check], *, check: bool) -> None:
    if check and not all(row.met for row in rows):
        raise click.exceptions.Exit(1)


def _cells(
    cells: Path, size: tuple[int, int, int], plot: Path | None, *, check: bool, as_json: bool
) -> None:
    from router.simulation import report
    from router.simulation.profiles import BadProfiles, read_profiles

    try:
        profiles = [p for p in read_profiles(cells) if p.usable]
    except BadProfiles as error:
        raise click.UsageError(str(error)) from error
    if not profiles:
        raise click.UsageError(f"{cells}: no profile has two cells and two arms common to them")
    results = _run(report.simulate_all(profiles, *size), len(profiles))
    if as_json:
        print_json(report.as_dict(results))
    else:
        _print(results, report.checks(results))
    draw_or_explain(partial(report.plot, results), plot)
    _judge(report.checks(results), check=check)


def _run(rows: Iterator[ProfileResult], count: int) -> list[ProfileResult]:
    """Collect the results, with a bar on a terminal."""
    if not sys.stderr.isatty():
        return list(rows)
    with click.progressbar(rows, length=count, label="profiles", file=sys.stderr) as bar:
        return list(bar)


def _print(results: Sequence[ProfileResult], checks: Iterable[Check]) -> None:
    columns = ["profile", "cells", "arms", "vs oracle", "vs best single", "recovery", "exploration"]
    print_table(
        "profiles, worst first", columns, map(_row, sorted(results, key=lambda r: r.vs_oracle))
    )
    _print_bar(checks)


def _print_bar(checks: Iterable[Check]) -> None:
    rows = [
        (c.quantity, f"{c.value:.4f}", f"{c.must:g}", "met" if c.met else "MISSED", c.worst)
        for c in checks
    ]
    print_table("the bar", ["quantity", "reached", "must", "", "worst"], rows)


def _row(result: ProfileResult) -> Sequence[object]:
    recovery = result.recovery_requests
    return (
        result.profile,
        result.cells,
        result.arms,
        f"{result.vs_oracle:.4f}",
        f"{result.vs_best_single:.4f}",
        "never" if recovery is None else recovery,
        f"{result.exploration_share:.4f}",
    )
