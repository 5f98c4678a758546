"""How long features and prediction take in this process, by the size of the request.

FILE is a labelled set of requests (JSON lines, may be gzipped), as for `specroute classifier
evaluate`, which times that file alone. Here also its requests of about 500 tokens, and bodies put
together from its prompts: 2,000 characters, one turn and a conversation of 150 KB. Run:
    python tests/perf/bench_classifier.py FILE [--json]
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))  # a compiled wheel comes first

from classifier import extract
from classifier.artifact import load
from classifier.dataset import read

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKENS_500 = range(1400, 3200)  # characters


def user(*turns: str) -> Mapping[str, Any]:
    """A body whose turns are the user's and the assistant's by turns."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[i % 2], "content": t} for i, t in enumerate(turns)]}


def texts_of(body: Mapping[str, Any]) -> list[str]:
    """The texts of its messages."""
    found = [message.get("content") for message in body.get("messages", [])]
    return [text for text in found if isinstance(text, str)]


def sets_of(bodies: list[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """What is timed, by name."""
    rng = random.Random(0)
    texts = [text for body in bodies for text in texts_of(body) if 60 < len(text) < 900]

    def joined(length: int) -> str:
        text = ""
        while len(text) < length:
            text += rng.choice(texts) + "\n"
        return text[:length]

    near = [body for body in bodies if sum(map(len, texts_of(body))) in TOKENS_500]
    return {
        "the file": bodies,
        "its requests of about 500 tokens": near * 4,
        "2,000 characters put together": [user(joined(2000)) for _ in range(1500)],
        "one turn of 150,000 characters": [user(joined(150_000)) for _ in range(30)] * 4,
        "491 turns of 300 characters": [user(*(joined(300) for _ in range(491)))] * 100,
    }


def timed(bodies: list[Mapping[str, Any]]) -> tuple[float, float]:
    """p50 and p99 in microseconds of the second time through them."""
    predictor = load()
    for _ in range(2):
        times = []
        for body in bodies:
            start = time.perf_counter_ns()
            predictor.predict(extract(body))
            times.append((time.perf_counter_ns() - start) / 1000.0)
    cuts = quantiles(times, n=100)
    return cuts[49], cuts[98]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True)
def main(file: Path, as_json: bool) -> None:
    """Print p50 and p99 of each set."""
    found = {name: timed(part) for name, part in sets_of([row.body for row in read(file)]).items()}
    if as_json:
        click.echo(
            json.dumps({name: {"p50": p50, "p99": p99} for name, (p50, p99) in found.items()})
        )
        return
    for name, (p50, p99) in found.items():
        click.echo(f"{name:34} p50 {p50:6.1f} us   p99 {p99:6.1f} us")


if __name__ == "__main__":
    main()
