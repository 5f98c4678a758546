"""`specroute audit`: whether drafting workers say what plain decoding says."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from router.cli.measuring import (
    bench_in,
    measured_specs,
    measuring_folder,
    measuring_options,
    progress_bar,
)
from router.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.bench.audit import Verdict

_ASKED_OF_AR = 2  # itself, and its control


@click.command()
@measuring_options
@click.option("--prompts", type=click.IntRange(min=3), default=30, show_default=True)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of answers that may differ beyond the control's.",
)
@json_option
def audit(**options: Any) -> None:
    """Compare greedy outputs of drafting workers with AR's, and AR with itself as a control.

    A difference that begins where AR's two best tokens are as good as equal is a tie: another order
    of sums may turn it, and it counts against nobody. Exit 1 when a worker really differs, or
    drafts nothing.

    \b
    Example:
      specroute audit --quick
      specroute audit -c specroute.yaml --worker code --prompts 100 --max-tokens 400
    """
    with measuring_folder() as folder:
        verdicts = _run(options, folder)
    from router.bench.audit import passes

    failures = passes(verdicts, options["tolerance"])
    if options["as_json"]:
        rows = [verdict.as_dict() for verdict in verdicts]
        print_json({"ok": not failures, "control": rows[0], "workers": rows[1:], "why": failures})
    else:
        _print(verdicts)
        for failure in failures:
            click.echo(failure, err=True)
    sys.exit(1 if failures else 0)


def _run(options: dict[str, Any], folder: Any) -> list[Verdict]:
    from router.bench.audit import AuditFailed
    from router.bench.audit import audit as run
    from router.bench.one_worker import WorkerFailed
    from router.bench.sweep import settings_of
    from router.bench.workload import PROMPTS

    specs = measured_specs(options["path"], options["names"], folder, quick=options["quick"])
    plain, *others = settings_of(specs, (), ())
    if not others:
        raise click.UsageError("there is no drafting worker to audit")
    bench = bench_in(folder, options["seed"])
    prompts = list(PROMPTS)
    bench.rng.shuffle(prompts)
    prompts = prompts[: options["prompts"]]
    with progress_bar(len(prompts) * (len(others) + _ASKED_OF_AR), "auditing") as advance:
        chosen = [other.spec for other in others]
        try:
            return asyncio.run(
                run(plain.spec, chosen, prompts, options["max_tokens"], bench, advance)
            )
        except (WorkerFailed, AuditFailed) as error:
            raise click.ClickException(str(error)) from error


def _print(verdicts: list[Verdict]) -> None:
    columns = ["worker", "mode", "answers", "equal", "ties", "different", "drafted", "note"]
    rows = [
        [
            *(v.worker, v.mode, v.n, v.equal, v.ties),
            *(len(v.differences) - v.ties, v.drafted, v.trouble),
        ]
        for v in verdicts
    ]
    print_table("greedy answers against plain decoding", columns, rows)
    for verdict in verdicts:
        for found in verdict.differences:
            sure = "unknown" if found.nats is None else f"{found.nats:.3f} nats"
            click.echo(
                f"{verdict.worker}: {found.prompt!r} differs after {found.at} characters ({sure}): "
                f"{found.plain!r} became {found.other!r}"
            )
