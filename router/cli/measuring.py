"""What the measuring commands share: which workers, a folder of their own, chance, and progress."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from router.cli.extras import needs
from workers.options import config_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from router.bench.one_worker import Bench
    from workers.config import Config
    from workers.spec import WorkerSpec


def measuring_options(command: Any) -> Any:
    """`--quick`, `-c`, `--worker`, `--max-tokens` and `--seed`."""
    for option in (
        click.option("--quick", is_flag=True, help="The bundled tiny trio instead of a config."),
        config_option("The config whose workers are measured.", required=False),
        click.option("--worker", "names", multiple=True, help="Only these; repeatable."),
        click.option("--max-tokens", type=click.IntRange(min=17), default=160, show_default=True),
        click.option("--seed", default=0, show_default=True),
    ):
        command = option(command)
    return command


@contextmanager
def measuring_folder() -> Iterator[Path]:
    """A folder that is gone afterwards; the workers' ordinary changes of state are not logged."""
    from workers.logs import configure_logs

    writer = configure_logs("console", "warning")
    try:
        with tempfile.TemporaryDirectory(prefix="specroute-measure-") as folder:
            yield Path(folder)
    finally:
        writer.close()


def measured_specs(
    path: Path | None, names: Sequence[str], folder: Path, *, quick: bool
) -> tuple[WorkerSpec, ...]:
    """The workers to measure: of one model, ones that we start ourselves.

    Raises:
        click.UsageError: there are none.
    """
    from router.cli.tiny_config import write_tiny_config

    if path is None and not quick:
        raise click.UsageError("say what to measure: --quick, or -c FILE")
    config = read_valid(path or write_tiny_config(folder))
    own = [spec for spec in config.worker_specs() if spec.managed]
    chosen = [spec for spec in own if not names or spec.name in names]
    unknown = set(names) - {spec.name for spec in own}
    if unknown or not chosen:
        there = ", ".join(spec.name for spec in own) or "none"
        raise click.UsageError(f"no worker {', '.join(sorted(unknown))} to start; has: {there}")
    return tuple(spec for spec in chosen if spec.model == chosen[0].model)


def read_valid(path: Path) -> Config:
    """The config in a file.

    Raises:
        click.UsageError: it has mistakes; every one is told.
    """
    from workers.config import ConfigError, load_config

    try:
        return load_config(path, os.environ)  # noqa: TID251 - handed to the config's reader
    except ConfigError as error:
        raise click.UsageError("\n".join(map(str, error.problems))) from error


def bench_in(folder: Path, seed: int) -> Bench:
    """Where and with what chance to measure."""
    from router.bench.one_worker import Bench
    from workers.clock import SystemClock

    rng = random.Random(seed)  # noqa: S311 - an order, no secret
    return Bench(folder, dict(os.environ), SystemClock(), rng)  # noqa: TID251 - handed to workers


@contextmanager
def progress_bar(total: int, label: str = "measuring") -> Iterator[Callable[[Any], None]]:
    """A callback to be called for each finished request: a bar, or a line every tenth."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    live, done = sys.stderr.isatty(), 0
    columns = (*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn())

    def advance(_sample: object) -> None:
        nonlocal done
        done += 1
        bar.advance(task)
        if not live and (done * 10) // total > ((done - 1) * 10) // total:
            click.echo(f"{label}: {done} of {total}", err=True)

    with Progress(*columns, console=Console(stderr=True), disable=not live) as bar:
        task = bar.add_task(label, total=total)
        yield advance


def draw_or_explain(draw: Callable[[Path], None], path: Path | None) -> None:
    """Draw a plot if one was asked for.

    Raises:
        click.ClickException: it cannot be written; the sentence says why.
    """
    if path is None:
        return
    try:
        draw(path)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error}") from error
    click.echo(f"plot written to {path}", err=True)


def _drawable(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Minutes of measuring are not lost to what can be known before: library and folder."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(
            f"there is no folder {path.parent}: make it first", context, option
        )
    return needs("matplotlib")(context, option, path)  # type: ignore[no-any-return]


plot_option = click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_drawable,
    help="Also draw a PNG.",
)


class NumberList(click.ParamType):  # type: ignore[type-arg]
    """Numbers separated by commas."""

    name = "numbers"

    def __init__(self, low: float, high: float, *, whole: bool = True) -> None:
        self._low, self._high, self._whole = low, high, whole

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """The numbers in their order."""
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",") if word.strip()]
        try:
            numbers = tuple(int(word) if self._whole else float(word) for word in words)
        except ValueError:
            numbers = ()
        if len(numbers) != len(words) or not all(self._low <= n <= self._high for n in numbers):
            kind = "whole numbers" if self._whole else "numbers"
            span = f"{kind} from {self._low:g} to {self._high:g}"
            self.fail(f"{value!r}: give {span}, separated by commas", param, ctx)
        return numbers
