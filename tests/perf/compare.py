"""The comparison: our gateway and its peers before one worker, in interleaved rounds.

    python tests/perf/compare.py --peers FOLDER [--rounds 5] [--json FILE] [--markdown FILE]

FOLDER holds a virtual environment per Python peer: `vllm` (vllm-router), `sgl` (sglang-router),
`litellm` (litellm[proxy]); `make perf` makes them. A peer that is not installed is left out, and
said so. Everything is on 127.0.0.1 and bounded. CPU comes from /proc, descendants included, and is
the sound figure on a shared machine; times are medians.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click
import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.perf import targets
from tests.perf.load import Load, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.perf.load import Sample
    from tests.perf.targets import Target

SLOW = ("LiteLLM",)  # asked a tenth of the requests in every other round, which must stay short


@dataclass(frozen=True)
class Case:
    """One load and the figures read off it: name to function of (sample, CPU seconds)."""

    name: str
    load: Load
    figures: dict[str, Callable[[Sample, float], float]]


def _ms(values: list[float]) -> float:
    return 1000.0 * median(values) if values else float("nan")


CASES = (
    Case("one", Load(1, 400), {"p50, 1 connection, ms": lambda s, cpu: _ms(s.latencies)}),
    Case(
        "many",
        Load(32, 60),
        {
            "CPU ms / request": lambda s, cpu: 1000.0 * cpu / max(1, len(s.latencies)),
            "requests / s": lambda s, cpu: len(s.latencies) / s.seconds,
        },
    ),
    Case(
        "long",
        Load(1, 60, prompt="word " * 20_000),
        {"p50, 100 KB prompt, ms": lambda s, cpu: _ms(s.latencies)},
    ),
    Case(
        "8 streams",
        Load(8, 1, tokens=60, gap_ms=20, stream=True),
        {"TTFT p50, 8 streams, ms": lambda s, cpu: _ms(s.first)},
    ),
    Case(
        "64 streams",
        Load(64, 1, tokens=100, gap_ms=20, stream=True),
        {
            "TTFT p50, 64 streams, ms": lambda s, cpu: _ms(s.first),
            "chunk delay p50, 64 streams, ms": lambda s, cpu: _ms(s.delays),
            "CPU s / 100k chunks": lambda s, cpu: 1e5 * cpu / max(1, s.chunks),
        },
    ),
    Case(
        "flat out",
        Load(8, 4, tokens=500, stream=True),
        {"CPU s / 100k chunks, flat out": lambda s, cpu: 1e5 * cpu / max(1, s.chunks)},
    ),
)


def start_all(
    folder: Path, peers: Path, stack: ExitStack, only: set[str], native: Path | None
) -> list[Target]:
    """Every target that can be started here."""
    stub = targets.start_stub(folder)
    stack.callback(stub.stop)
    backend, found = stub.port, [stub]
    starts: dict[str, Callable[[], Target]] = {
        "nginx": lambda: targets.start_nginx(folder, backend),
        "vllm-router": lambda: targets.start_vllm(folder, backend, peers / "vllm"),
        "sglang-router": lambda: targets.start_sglang(folder, backend, peers / "sgl"),
        "LiteLLM": lambda: targets.start_litellm(folder, backend, peers / "litellm"),
        "specroute": lambda: targets.start_ours(folder, backend),
    }
    if native is not None:
        starts["specroute compiled"] = lambda: targets.start_ours(folder, backend, native=native)
    for name, start in starts.items():
        if only and name not in only:
            continue
        try:
            target = start()
        except (OSError, RuntimeError) as error:
            click.echo(f"{name} is left out: {error}", err=True)
            continue
        stack.callback(target.stop)
        target.rss_start_mb = target.rss_mb()
        found.append(target)
        click.echo(f"{name}: healthy after {target.started_s:.1f} s", err=True)
    return found


def variants(found: list[Target]) -> list[tuple[str, Target, str]]:
    """Name, target and extra headers: ours is measured pinned and routed."""
    rows = []
    for target in found:
        if target.name.startswith("specroute"):
            rows.append((f"{target.name}, pinned", target, "x-specroute-worker: plain\r\n"))
            rows.append((f"{target.name}, routed", target, ""))
        else:
            rows.append((target.name, target, ""))
    return rows


def measure(case: Case, target: Target, extra: str, *, share: int) -> dict[str, float]:
    """The figures of one case on one target."""
    load = case.load
    if target.name in SLOW:
        tokens = load.tokens if load.tokens < 100 else load.tokens // 5
        load = replace(load, each=max(1, load.each // share), tokens=tokens)
    before, begin = target.cpu_s(), time.monotonic()
    sample = uvloop.run(run(load, target.port, target.headers + extra))
    sample.seconds = time.monotonic() - begin
    cpu = target.cpu_s() - before
    row = {name: figure(sample, cpu) for name, figure in case.figures.items()}
    return {**row, "failures": float(sample.failures)}


def compare(found: list[Target], rounds: int, budget_s: float) -> dict[str, dict[str, list[float]]]:
    """Figures of each round by target; rounds end when the budget is used up."""
    rows: dict[str, dict[str, list[float]]] = {}
    begin = time.monotonic()
    for number in range(rounds):
        if number and (time.monotonic() - begin) * (number + 1) / number > budget_s:
            click.echo(f"the budget ended the comparison after {number} rounds", err=True)
            break
        for case in CASES:
            for name, target, extra in variants(found):
                if target.name in SLOW and number % 2:
                    continue
                for figure, value in measure(case, target, extra, share=10).items():
                    rows.setdefault(name, {}).setdefault(figure, []).append(value)
        click.echo(f"round {number + 1} after {time.monotonic() - begin:.0f} s", err=True)
    for name, target, _ in variants(found):
        rows[name]["RSS start, MB"] = [target.rss_start_mb]
        rows[name]["RSS after, MB"] = [target.rss_mb()]
        rows[name]["healthy after, s"] = [target.started_s]
    return rows


def joined(
    rows: dict[str, dict[str, list[float]]], earlier: dict[str, dict[str, list[float]]]
) -> dict[str, dict[str, list[float]]]:
    """The rounds of two runs as if they had been one."""
    return {
        name: {f: [*earlier.get(name, {}).get(f, []), *values] for f, values in figures.items()}
        for name, figures in rows.items()
    }


def table(rows: dict[str, dict[str, list[float]]]) -> str:
    """Markdown: median and, over several rounds, [min to max]; CPU also as requests a second."""
    names = [name for name in rows[next(iter(rows))] if name != "failures"]
    lines = ["| | " + " | ".join(rows) + " |", "|---" * (len(rows) + 1) + "|"]
    for name in names:
        cells = [_cell(rows[target].get(name, [])) for target in rows]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    each = [rows[target]["CPU ms / request"] for target in rows]
    cells = [f"{1000.0 / median(values):,.0f}" if median(values) else "–" for values in each]
    lines.append("| requests / CPU second | " + " | ".join(cells) + " |")
    failed = [f"{sum(rows[target]['failures']):.0f}" for target in rows]
    lines.append("| failures | " + " | ".join(failed) + " |")
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    if not values:
        return "–"
    digits = 0 if median(values) >= 100 else 2 if median(values) >= 0.1 else 3
    text = f"{median(values):.{digits}f}"
    if len(values) == 1:
        return text
    return f"{text} [{min(values):.{digits}f}–{max(values):.{digits}f}]"


@click.command()
@click.option("--peers", type=click.Path(path_type=Path), default=Path("/nonexistent"))
@click.option("--rounds", default=5, show_default=True)
@click.option("--budget", default=600.0, show_default=True, help="Seconds for all rounds.")
@click.option("--native", type=click.Path(path_type=Path), help="A Python with `make native`'s.")
@click.option("--only", multiple=True, help="Start these targets only, beside direct.")
@click.option("--json", "json_path", type=click.Path(path_type=Path))
@click.option(
    "--with",
    "earlier",
    type=click.Path(path_type=Path, exists=True),
    help="The JSON of a run to be continued: its rounds count too.",
)
@click.option("--markdown", "markdown_path", type=click.Path(path_type=Path))
def main(
    peers: Path,
    rounds: int,
    budget: float,
    native: Path | None,
    only: tuple[str, ...],
    json_path: Path | None,
    earlier: Path | None,
    markdown_path: Path | None,
) -> None:
    """Run the comparison and print its table."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    folder = Path(tempfile.mkdtemp(prefix="specroute-perf-"))
    try:
        with ExitStack() as stack:
            found = start_all(folder, peers, stack, set(only), native)
            for _, target, extra in variants(found):  # warm, and let the learned figures settle
                uvloop.run(run(Load(4, 25), target.port, target.headers + extra))
            rows = compare(found, rounds, budget)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if earlier is not None:
        rows = joined(rows, json.loads(earlier.read_text()))
    text = table(rows)
    _write(json_path, json.dumps(rows, indent=1))
    _write(markdown_path, text + "\n")
    click.echo(text)


def _write(path: Path | None, text: str) -> Any:
    if path is not None:
        path.write_text(text)


if __name__ == "__main__":
    main()
