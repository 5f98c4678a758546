"""The fault table: every fault done to real processes, and how soon it was found and over.

    python tests/perf/fault_table.py --rounds 20 --lanes 5 [--redis 60] [--slow 75]

Exit 1 when anything went wrong: an orphan, a stuck request, a bystander killed.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.fault_rows import table
from tests.support.faults import run_rounds


@click.command()
@click.option("--rounds", default=3, show_default=True)
@click.option("--lanes", default=1, show_default=True, help="Rounds side by side.")
@click.option("--redis", "redis_s", default=60.0, show_default=True, help="Seconds without Redis.")
@click.option("--slow", "slow_s", default=75.0, show_default=True, help="Seconds of the prefill.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Also write the table there.")
def main(rounds: int, lanes: int, redis_s: float, slow_s: float, markdown: Path | None) -> None:
    """Do every fault `rounds` times and print the table."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        rows = asyncio.run(
            run_rounds(
                Path(folder),
                rounds,
                lanes=lanes,
                slow_s=slow_s,
                redis_s=redis_s,
                report=lambda row: click.echo(row, err=True),
            )
        )
    text = table(rows)
    click.echo(text)
    if markdown is not None:
        markdown.write_text(text + "\n")
    sys.exit(any(row.wrong for row in rows))


if __name__ == "__main__":
    main()
