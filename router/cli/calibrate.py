"""`specroute calibrate`: hardware, binary, models, a short sweep, and a config of what won."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from router.cli.measuring import (
    bench_in,
    draw_or_explain,
    measuring_folder,
    plot_option,
    progress_bar,
)
from router.cli.output import json_option, print_json
from router.cli.sweep import print_sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from router.bench.advise import Plan
    from router.bench.calibrate import Wish
    from router.bench.sweep import Grid, Setting
    from workers.machine import Machine

_GGUF = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--target", type=_GGUF, help="The model's GGUF; asked for on a terminal.")
@click.option("--draft", type=_GGUF, help="A drafter's GGUF, if there is one.")
@click.option("--binary", type=_GGUF, help="A llama-server; else the PATH's, else the embedded.")
@click.option("--name", help="What clients call the model; the file's name, unless given.")
@click.option("--context", type=click.IntRange(min=256), default=4096, show_default=True)
@click.option("--slots", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), help="Of each worker; llama.cpp's default.")
@click.option("--workers", "most", type=click.IntRange(1, 4), default=3, show_default=True)
@click.option("--minutes", type=click.FloatRange(min=0.2), default=10.0, show_default=True)
@click.option("--traffic", type=_GGUF, multiple=True, help="Decision logs or chat bodies.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("specroute.yaml"),
    show_default=True,
)
@click.option("--yes", is_flag=True, help="Ask nothing; overwrite.")
@click.option("--seed", default=0, show_default=True)
@plot_option
@json_option
def calibrate(**options: Any) -> None:
    """Measure this machine with your model for some minutes, and write the config of what won.

    Without a model: the bundled tiny trio. Exit 1 when nothing could be measured.

    \b
    Example:
      specroute calibrate --target model.gguf --draft drafter.gguf
      specroute calibrate --minutes 3 --yes -o tiny.yaml
    """
    output: Path = options["output"]
    if output.exists() and not options["yes"]:
        if not sys.stdin.isatty():
            raise click.UsageError(f"{output} is there already: choose another -o, or --yes")
        click.confirm(f"{output} is there already; overwrite it?", abort=True)
    with measuring_folder() as folder:
        _guide(options, folder)


def _guide(options: dict[str, Any], folder: Path) -> None:
    from router.bench.calibrate import candidates, config_text
    from router.bench.sweep_report import draw, sweep_report

    machine = _machine()
    wish = _wish(options)
    settings = candidates(wish, _modes(wish), machine)
    _tell_binary(settings[0])
    swept = _measure(settings, options, folder)
    report = sweep_report(swept)
    if not report["rows"]:
        raise click.ClickException("nothing could be measured: " + "; ".join(report["problems"]))
    plan, said = _advice(report, options, machine)
    options["output"].write_text(config_text(wish, plan, settings, machine, said))
    if options["as_json"]:
        print_json({"config": str(options["output"]), "text": said} | plan.as_dict() | report)
    else:
        print_sweep(report)
        for sentence in said:
            click.echo(sentence)
    draw_or_explain(partial(draw, report), options["plot"])
    _verify(options["output"])


def _machine() -> Machine:
    from workers.machine import this_machine

    machine = this_machine(os.environ.get("PATH", ""))  # noqa: TID251 - where programs are
    for line in machine.lines():
        click.echo(line, err=True)
    return machine


def _wish(options: dict[str, Any]) -> Wish:
    """The files and sizes; asked for where somebody can answer."""
    from router.bench.calibrate import Wish

    target, draft = options["target"], options["draft"]
    if target is None and sys.stdin.isatty() and not options["yes"]:
        answer = click.prompt("The model's GGUF (empty: the bundled tiny one)", default="")
        target = _existing(answer)
        if target is not None and draft is None:
            draft = _existing(click.prompt("A drafter's GGUF (empty: none)", default=""))
    common = {name: options[name] for name in ("context", "slots", "threads")}
    if target is None:
        from workers.tiny import prepare

        trio = prepare(_kept_models(options["output"]))
        common["threads"] = common["threads"] or 1  # more would wait for one another
        return Wish("tiny", trio.target, trio.draft, reasoning="off", **common)
    name = options["name"] or target.stem.lower()
    binary = options["binary"]
    return Wish(name, target.resolve(), draft and draft.resolve(), binary=binary, **common)


def _kept_models(output: Path) -> Path:
    """The tiny trio's files stay: the config names them."""
    return output.resolve().parent / ".specroute" / "models"


def _existing(answer: str) -> Path | None:
    path = Path(answer).expanduser() if answer else None
    if path is not None and not path.is_file():
        raise click.UsageError(f"{path} is no file")
    return path


def _modes(wish: Wish) -> tuple[str, ...]:
    from router.bench.calibrate import modes_for
    from workers.gguf_header import NotGGUF, read_header

    try:
        draft = read_header(wish.draft) if wish.draft is not None else None
        modes = modes_for(read_header(wish.target), draft)
    except (OSError, NotGGUF) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{wish.target.name} allows: {', '.join(modes)}", err=True)
    return modes


def _tell_binary(setting: Setting) -> None:
    from workers.capabilities import CapabilityError
    from workers.engines import EngineMissing, engine_of

    engine = engine_of(setting.spec)
    try:
        command = engine.command(setting.spec, os.environ.get("PATH", ""))  # noqa: TID251
        found = engine.read_capabilities(command)
    except (EngineMissing, CapabilityError) as error:
        raise click.ClickException(str(error)) from error
    build = f"{found.label}, {found.dialect} dialect" if found else "not told"
    click.echo(f"engine {Path(command[0]).name}: {build}", err=True)


def _measure(settings: tuple[Setting, ...], options: dict[str, Any], folder: Path) -> Any:
    from contextlib import ExitStack

    from router.bench.calibrate import calibrate as run

    with ExitStack() as shown:

        def begun(grid: Grid) -> Callable[[object], None]:
            count = f"{len(grid.settings)} settings, {grid.per_class} prompts of each class"
            click.echo(count, err=True)
            return shown.enter_context(progress_bar(grid.total))

        seconds, bench = 60.0 * options["minutes"], bench_in(folder, options["seed"])
        return asyncio.run(run(settings, seconds, bench, begun))


def _advice(
    report: dict[str, Any], options: dict[str, Any], machine: Machine
) -> tuple[Plan, list[str]]:
    from router.bench.advise import NotMeasured, advise, read_measurements, recommended, sentences
    from router.bench.calibrate import equal_traffic
    from router.bench.measured import parse_report
    from router.bench.traffic import BadTraffic, read_traffic

    try:
        sample = read_traffic(options["traffic"]) if options["traffic"] else equal_traffic(report)
        cells = read_measurements([parse_report(report)], 1)
        rng = random.Random(options["seed"])  # noqa: S311 - intervals, no secret
        plans = advise(sample, cells, most=options["most"], memory_gb=machine.room_gb, rng=rng)
    except (BadTraffic, NotMeasured) as error:
        raise click.ClickException(str(error)) from error
    return recommended(plans), sentences(sample, plans)


def _verify(path: Path) -> None:
    """What was written must be what `check` accepts."""
    from workers.config import read_config

    _, problems = read_config(path, os.environ)  # noqa: TID251 - handed to the config's reader
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        raise click.exceptions.Exit(1)
    click.echo(f"wrote {path}; serve it with `specroute up -c {path}`", err=True)
