"""`specroute bench`: every mode by class, and routing against each single mode, side by side."""

from __future__ import annotations

import asyncio
import random
import socket
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from router.cli.client import GatewayClient, GatewayURL
from router.cli.measuring import progress_bar, read_valid
from router.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.bench.load import Sample
    from router.bench.plan import BenchPlan

ROUTED = "routed"


def parallel(_context: click.Context, _option: click.Parameter, value: str) -> tuple[int, ...]:
    """Numbers of parallel requests from a list like 1,2,4."""
    try:
        found = tuple(int(part) for part in value.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise click.BadParameter(f"{value!r} is no list of positive numbers like 1,2,4")
    return found


@click.command()
@click.option("--quick", is_flag=True, help="The bundled tiny trio, own workers, a few minutes.")
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Build equal fleets from this config's workers.",
)
@click.option(
    "--url",
    type=GatewayURL(),
    help="Measure a gateway that runs already (one worker per mode, by pins).",
)
@click.option("--model", default="", help="With --url: the model to ask for.")
@click.option(
    "--token", envvar="SPECROUTE_API_KEY", show_envvar=True, help="With --url: an API key."
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Counted rounds."
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Uncounted rounds first.",
)
@click.option(
    "--per-class",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Prompts of each class in a round.",
)
@click.option("--max-tokens", type=click.IntRange(min=17), default=160, show_default=True)
@click.option(
    "--concurrency",
    default="1",
    show_default=True,
    callback=parallel,
    help="Requests at a time; several, as in 1,2,4, are measured one after the other.",
)
@click.option(
    "--samples",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append every answer to this file as it comes, and report all that the file holds; "
    "with nothing to measure, report it as it is.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep learned state, logs and decisions of the own stack here.",
)
@click.option("--seed", default=0, show_default=True)
@json_option
def bench(**options: Any) -> None:
    """Measure decode speed, acceptance and time per request, interleaved and with intervals.

    Each single mode gets as many workers, slots and threads as the routed fleet.

    \b
    Example:
      specroute bench --quick
      specroute bench --url http://127.0.0.1:8080 --model qwen3.8-27b --concurrency 4
      specroute bench --quick --rounds 1 --samples all.jsonl --state-dir bench   (again and again)
    """
    if not any(options[name] for name in ("quick", "url", "config", "samples")):
        raise click.UsageError("say what to measure: --quick, --config FILE or --url URL")
    from router.bench.figures import full_report

    measured = asyncio.run(_measure(options))
    reports = []
    for samples, plan in measured.runs:
        counted = [s for s in samples if s.job.round > 0]
        rng = random.Random(options["seed"])  # noqa: S311 - a bootstrap, no secret
        report = full_report(counted, ROUTED, rng) | {"concurrency": plan.concurrency}
        reports.append(report)
        if not options["as_json"]:
            _print(report, plan)
    _forecasts_and_json(reports, measured.forecasts, as_json=options["as_json"])
    failed = [s for samples, _ in measured.runs for s in samples if s.job.round > 0 and s.error]
    if failed:
        click.echo(f"{len(failed)} requests failed: {failed[0].error}", err=True)
        sys.exit(1)


def _forecasts_and_json(
    reports: list[dict[str, Any]], forecasts: dict[str, float] | None, *, as_json: bool
) -> None:
    """The first load's figures on top, as the contract has them, and every load's in a list."""
    if as_json:
        more = {"by_concurrency": reports} if len(reports) > 1 else {}
        print_json(reports[0] | more | {"forecasts": forecasts})
    elif forecasts:
        print_table("90 % forecasts of routed requests", ["quantity", "value"], forecasts.items())


class Measured(NamedTuple):
    """Samples and plan of every load, and how the forecasts of routed requests held."""

    runs: list[tuple[list[Sample], BenchPlan]]
    forecasts: dict[str, float] | None


async def _measure(options: dict[str, Any]) -> Measured:
    from router.bench.plan import BenchPlan
    from router.bench.samples import read

    try:
        earlier = read(options["samples"]) if options["samples"] else {}
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if not any(options[name] for name in ("quick", "url", "config")):
        if not earlier:
            raise click.UsageError(
                f"{options['samples']} holds no samples to report: measure some with --quick, "
                "--config FILE or --url URL"
            )
        return Measured(
            [(samples, BenchPlan({}, concurrency=number)) for number, samples in earlier.items()],
            _forecasts(options["state_dir"], None),
        )
    runs = []
    async with AsyncExitStack() as resources:
        opened = await _open(options, resources)
        for number, concurrency in enumerate(options["concurrency"]):
            before = earlier.get(concurrency, [])
            plan = _plan(options, opened.targets, concurrency, first=number == 0)
            plan = replace(plan, first_round=1 + max((s.job.round for s in before), default=0))
            runs.append((before + await _run(opened.url, plan, options), plan))
        forecasts = _forecasts(opened.folder, opened.targets[ROUTED])
    return Measured(runs, forecasts)


def _plan(
    options: dict[str, Any], targets: dict[str, str], concurrency: int, *, first: bool
) -> BenchPlan:
    from router.bench.plan import BenchPlan

    return BenchPlan(
        targets,
        rounds=options["rounds"],
        warmup_rounds=options["warmup"] if first else min(1, options["warmup"]),
        per_class=options["per_class"],
        max_tokens=options["max_tokens"],
        concurrency=concurrency,
    )


async def _run(url: str, plan: BenchPlan, options: dict[str, Any]) -> list[Sample]:
    from router.bench.load import run_jobs
    from router.bench.samples import append
    from workers.clock import SystemClock

    samples: list[Sample] = []
    headers = {"authorization": f"Bearer {options['token']}"} if options["token"] else None
    with progress_bar(plan.total) as advance:
        seed = options["seed"] + 1000 * (plan.first_round - 1)
        rng = random.Random(seed)  # noqa: S311 - an order, no secret
        for jobs in plan.blocks(rng):
            answers = await run_jobs(
                url,
                jobs,
                clock=SystemClock(),
                concurrency=plan.concurrency,
                headers=headers,
                on_sample=advance,
            )
            samples += answers
            if options["samples"]:
                append(options["samples"], plan.concurrency, answers)
    return samples


def _forecasts(folder: Path | None, model: str | None) -> dict[str, float] | None:
    """How the forecasts for `model` (None: that of the first answer) held, by the decision log."""
    from router.simulation.forecasts import coverage
    from router.simulation.logged import read_log

    rows = list(read_log(sorted(folder.glob("decisions*.jsonl")))) if folder else []
    model = model or next((row.model.partition("-only-")[0] for row in rows), None)
    found = coverage(row for row in rows if row.model == model)
    return found.as_dict() if found is not None else None


class Opened(NamedTuple):
    """The gateway to measure: its address, table name -> model to ask for, an own stack's state."""

    url: str
    targets: dict[str, str]
    folder: Path | None = None


async def _open(options: dict[str, Any], resources: AsyncExitStack) -> Opened:
    if options["url"]:
        pins = await _pins(options["url"], options["model"], options["token"])
        return Opened(options["url"], pins)
    from router.bench.fleets import equal_fleets
    from router.cli.embedded_redis import RedisMissing
    from router.cli.stack import StackFailed, StackOptions, running_stack
    from router.cli.tiny_config import write_tiny_config

    folder = _own_folder(options["state_dir"], resources)
    base = options["config"] or write_tiny_config(folder)
    read_valid(base)
    try:
        config, targets, workers = equal_fleets(base, folder, routed=ROUTED)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    stack = StackOptions(config, folder, "127.0.0.1", _free_port(), workers)
    click.echo(f"starting {len(workers)} workers", err=True)
    try:
        running = await resources.enter_async_context(running_stack(stack))
    except (StackFailed, RedisMissing) as error:
        raise click.ClickException(str(error)) from error
    return Opened(running.url, targets, folder)


def _own_folder(path: Path | None, resources: AsyncExitStack) -> Path:
    """The state folder of the own stack, which nobody else uses meanwhile."""
    from router.cli.folder_lock import held_folder

    wanted = path or Path(
        resources.enter_context(tempfile.TemporaryDirectory(prefix="specroute-bench-"))
    )
    return resources.enter_context(held_folder(wanted))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _pins(url: str, model: str, token: str | None) -> dict[str, str]:
    """A running gateway's targets: the model routed, and one pin for each mode."""
    listing = GatewayClient(url, token).call("GET", "/v1/models", holds="data")["data"]
    names = [row["id"] for row in listing]
    routed = model or next((n for n in names if "@" not in n), "")
    if routed not in names:
        raise click.UsageError(f"{url} serves no model {model!r}; it has: {', '.join(names)}")
    pins = {n.partition("@")[2]: n for n in names if n.startswith(f"{routed}@")}
    return {ROUTED: routed} | pins


def _print(report: dict[str, Any], plan: BenchPlan) -> None:
    columns = ["target", "class", "n", "decode tok/s", "95 %", "TTFT p50 ms", "acceptance", "len"]
    for title, name in (("by class", "rows"), ("by kind", "kinds")):
        print_table(title, columns, [_cells(row) for row in report[name]])
    shares = report["routing"] + report["routing_by_kind"]
    print_table(
        "where routed requests went",
        ["class", "fastest mode", "went there", "all"],
        [
            [s["class"], s["fastest_mode"], f"{s['share_of_routed']:.0%}", _counts(s["routed_to"])]
            for s in shares
        ],
    )
    seconds = report["seconds_per_request"]
    print_table(
        f"seconds per request, {plan.concurrency} at a time",
        ["target", "seconds"],
        [[name, f"{value:.3f}"] for name, value in sorted(seconds.items(), key=lambda i: i[1])],
    )
    ratio = report["routed_vs_best_single"]
    if ratio:
        click.echo(
            f"routed against the best single mode ({report['best_single']}): "
            f"{ratio['ratio']:.3f} x [{ratio['lower']:.3f}, {ratio['upper']:.3f}]"
        )


def _counts(modes: dict[str, int]) -> str:
    """The most frequent first."""
    ordered = sorted(modes.items(), key=lambda item: -item[1])
    return ", ".join(f"{mode} {count}" for mode, count in ordered)


def _cells(row: dict[str, Any]) -> list[Any]:
    speed = row["decode_tps"]
    return [
        row["target"],
        row["class"],
        row["n"],
        f"{speed['mean']:.1f}" if speed else "",
        f"{speed['lower']:.1f} to {speed['upper']:.1f}" if speed else "",
        row["ttft_ms"]["p50"],
        "" if row["acceptance"] is None else f"{row['acceptance']:.2f}",
        "" if row["mean_len"] is None else f"{row['mean_len']:.2f}",
    ]
