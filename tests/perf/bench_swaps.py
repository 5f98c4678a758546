"""Two workers that cannot be resident together, on the tiny trio: what planned swaps take.

`python tests/perf/bench_swaps.py [--binary LLAMA_SERVER] [--mix steady] [--requests 120]`: for a
steady, an alternating and a bursty mix the seconds of the same requests, one after the other, with
the group left to the plan, and with each member alone throughout; and what a request takes with a
swap for each. Three minutes a mix, each told when it is done.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.gateway import ADMIN, SECRET, gateway
from tests.support.waiting import until
from workers.agent import AgentOptions, run_agent
from workers.clock import SystemClock
from workers.registry import MemoryRegistry
from workers.spec import WorkerSpec
from workers.tiny import prepare

if TYPE_CHECKING:
    from collections.abc import Callable

PROMPTS = {
    "structured": "Count from 1 to 60, separated by commas.",
    "prose": "Tell me a long story about a lighthouse.",
}
BEST = {"structured": "b", "prose": "a"}
WARM, EACH, TOKENS = 8, 6, 96
CLOCK = SystemClock()


def mixes(rng: random.Random, count: int) -> dict[str, list[str]]:
    """Classes of the requests, in order."""
    both = ("structured", "prose")
    bursty, kind = [], 0
    for _ in range(count):
        kind ^= rng.random() < 0.1
        bursty.append(both[kind])
    return {
        "steady": ["prose" if rng.random() < 0.8 else "structured" for _ in range(count)],
        "alternating": [both[i // 10 % 2] for i in range(count)],
        "bursty": bursty,
    }


@asynccontextmanager
async def one_gpu(folder: Path, binary: Path | None, *names: str):
    """A gateway before an agent with these workers, which share a group; the first is resident."""
    trio = prepare(folder / "trio")
    shared = {"binary": binary, "exclusive_group": "gpu", "threads": 1, "context": 1024}
    both = {
        "a": WorkerSpec("a", "tiny", "ar", trio.target, **shared),
        "b": WorkerSpec("b", "tiny", "dflash2", trio.target, trio.draft, **shared),
    }
    registry, stop = MemoryRegistry(CLOCK), asyncio.Event()
    options = AgentOptions(folder, SECRET, dict(os.environ), heartbeat=0.5, host="here")
    async with asyncio.TaskGroup() as tasks:
        specs = [both[name] for name in names]
        tasks.create_task(run_agent(specs, registry, options, CLOCK, stop))
        async with gateway(registry=registry) as gate:
            await until(lambda: len(gate.fleet.everything()) == len(names), 120.0)
            for name in reversed(names):  # and so the first one is left
                await resident(gate, name)
                for number in range(2 * WARM):
                    await ask(gate, ("structured", "prose")[number % 2], name)
            yield gate
        stop.set()


async def ask(gate, kind: str, worker: str = "") -> None:
    """One greedy stream; fails when it was cut."""
    model = f"tiny@{worker}" if worker else "tiny"
    headers = {"x-specroute-class": kind}
    answer = await gate.chat(
        PROMPTS[kind], headers=headers, model=model, stream=True, max_tokens=TOKENS, temperature=0
    )
    if "data: [DONE]" not in answer.text:
        raise SystemExit(f"a stream was cut: {answer.text[-300:]}")


def serving(gate) -> str:
    """The resident's name; none during a swap."""
    return next((w.name for w in gate.fleet.everything() if w.record.state.serves), "")


async def resident(gate, name: str) -> None:
    """Until that worker is resident; loaded if need be."""
    if serving(gate) != name:
        await gate.client.post(f"/ops/workers/{name}/load", headers=ADMIN)
    await until(lambda: serving(gate) == name, 120.0)


async def taken(gate, kinds: list[str], pin: Callable[[str], str]) -> tuple[float, int]:
    """Seconds for the mix, and how often another worker than before served."""
    before, first = perf_counter(), len(gate.outcomes)
    for kind in kinds:
        await ask(gate, kind, pin(kind))
    seconds = perf_counter() - before
    await until(lambda: len(gate.outcomes) == first + len(kinds), 30.0)
    served = [outcome.worker for outcome in gate.outcomes[first - 1 :]]
    return seconds, sum(one != other for one, other in pairwise(served))


async def measure(folder: Path, binary: Path | None, mix: str, kinds: list[str]) -> None:
    """One line."""
    static = {}
    for name in ("a", "b"):
        async with one_gpu(folder, binary, name) as gate:
            static[name], _ = await taken(gate, kinds, lambda _: "")
    async with one_gpu(folder, binary, "a", "b") as gate:
        planned, swaps = await taken(gate, kinds, lambda _: "")
        few = [*PROMPTS] * (EACH // 2)
        each, changes = await taken(gate, few, lambda kind: BEST[kind])
        load = {w.name: w.record.load_s for w in gate.fleet.everything()}
    best = min(static.values())
    click.echo(
        f"{mix}: planned {planned:.1f} s with {swaps} swaps, always a {static['a']:.1f}, always b "
        f"{static['b']:.1f}, planned/best {planned / best:.3f}; with a swap for each "
        f"{each / len(few):.2f} s a request with {changes} swaps in {len(few)}, planned "
        f"{planned / len(kinds):.2f}; loads {load}"
    )


@click.command()
@click.option("--binary", type=click.Path(path_type=Path), help="A llama-server.")
@click.option("--mix", "names", multiple=True, default=("steady", "alternating", "bursty"))
@click.option("--requests", default=120, show_default=True)
def main(binary: Path | None, names: tuple[str, ...], requests: int) -> None:
    """One line per mix."""
    made = mixes(random.Random(1), requests)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="sr-swaps-") as folder:
            asyncio.run(measure(Path(folder), binary, name, made[name]))


if __name__ == "__main__":
    main()
