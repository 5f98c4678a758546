"""What two requests cost in slots side by side and in others, with one KV cache and with several.

    python tests/perf/slot_neighbours.py
    python tests/perf/slot_neighbours.py --feed-forward 0   # narrow layers, see the model card

Two AR servers of four slots, asked in turn. Milliseconds a token of each request, prompt left out.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

import click
import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.engines import RealWorker, real_workers
from workers.tiny import COST, Cost

SLOTS, ROUNDS, TOKENS = 4, 8, 120
PLANS = ((0,), (0, 1), (1, 2), (0, 2), (0, 3), (0, 1, 2), (0, 1, 3), (0, 1, 2, 3))


async def decoded(http: httpx.AsyncClient, worker: RealWorker, slot: int) -> float:
    """Milliseconds a token of one answer in that slot."""
    body = {
        "prompt": f"Tell a story about fox {slot} and the river.",
        "id_slot": slot,
        "n_predict": TOKENS,
        "ignore_eos": True,
        "cache_prompt": False,
        "temperature": 0.8,
        "seed": 3,
    }
    answer = await http.post(f"{worker.url}/completion", json=body, headers=worker.headers)
    return float(answer.json()["timings"]["predicted_per_token_ms"])


async def measured(workers: list[RealWorker]) -> dict[tuple[int, ...], list[float]]:
    """The median of each plan on each worker."""
    seen: dict[tuple[int, ...], list[list[float]]] = {p: [[] for _ in workers] for p in PLANS}
    async with httpx.AsyncClient(timeout=120.0) as http:
        for _ in range(ROUNDS):
            for plan, times in seen.items():
                for worker, row in zip(workers, times, strict=True):
                    alike = [decoded(http, worker, slot) for slot in plan]
                    row.append(statistics.mean(await asyncio.gather(*alike)))
    return {plan: [statistics.median(row) for row in times] for plan, times in seen.items()}


@click.command()
@click.option("--layers", default=COST.layers, show_default=True)
@click.option("--feed-forward", default=COST.feed_forward, show_default=True)
def main(layers: int, feed_forward: int) -> None:
    """A line for each choice of slots."""
    cost = Cost(layers, feed_forward)
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as other,
        real_workers(Path(one), "ar", slots=SLOTS, cost=cost) as apart,
        real_workers(Path(other), "ar", slots=SLOTS, cost=cost, extra=("--kv-unified",)) as unified,
    ):
        result = asyncio.run(measured([*apart, *unified]))
    click.echo("| slots in use | a KV cache each | one KV cache |\n| --- | --- | --- |")
    for plan, (split, shared) in result.items():
        click.echo(f"| {', '.join(map(str, plan))} | {split:.2f} | {shared:.2f} |")


if __name__ == "__main__":
    main()
