"""Two workers that cannot be resident together, on the tiny trio: what planned swaps take.

`python tests/perf/bench_swaps.py [--binary LLAMA_SERVER] [--mix steady] [--requests 80]`: for a
steady, an alternating and a bursty mix the seconds of the same requests with the group left to the
plan and with each member alone throughout, interleaved request by request; what a swap after a
planned request takes is added to it. And what a request takes with a swap for each. Three minutes a
mix, each told when it is done.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import NamedTuple

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.gateway import ADMIN, SECRET, gateway
from tests.support.waiting import until
from workers.agent import AgentOptions, run_agent
from workers.clock import SystemClock
from workers.registry import MemoryRegistry
from workers.spec import WorkerSpec
from workers.tiny import prepare

PROMPTS = {
    "structured": "Count from 1 to 60, separated by commas.",
    "prose": "Tell me a long story about a lighthouse.",
}
BEST = {"structured": "b", "prose": "a"}
WARM, EACH, TOKENS = 5, 6, 96
NOTICED_S = 0.3  # until a swap that the last request brought about shows
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
    trio = prepare(folder.parent / "trio")
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


class Turn(NamedTuple):
    """One request: who served it, and its seconds; those of the swap after it, if there was one."""

    how: str
    kind: str
    worker: str
    seconds: float
    swap_s: float


async def turn(gate, how: str, kind: str, pin: str = "") -> Turn:
    """Ask, and wait until a swap that this brings about is over."""
    was, told, swap_s, before = serving(gate), len(gate.outcomes), 0.0, perf_counter()
    await ask(gate, kind, pin)
    seconds = perf_counter() - before
    await until(lambda: len(gate.outcomes) > told, 30.0)
    await asyncio.sleep(NOTICED_S if len(gate.fleet.everything()) > 1 else 0.0)
    if serving(gate) != was:
        before = perf_counter()
        await until(lambda: bool(serving(gate)), 120.0)
        swap_s = perf_counter() - before + NOTICED_S
    return Turn(how, kind, gate.outcomes[-1].worker, seconds, swap_s)


def alike(turns: list[Turn]) -> dict[str, float]:
    """Seconds of each way, where a request of a kind takes on a worker what it takes on average.

    Whichever way led to that worker: what else the machine did meanwhile falls out.
    """
    means: dict[tuple[str, str], float] = {}
    for key in {(t.worker, t.kind) for t in turns}:
        means[key] = mean(t.seconds for t in turns if (t.worker, t.kind) == key)
    spent: dict[str, float] = {}
    for one in turns:
        seconds = means[one.worker, one.kind] + one.swap_s
        spent[one.how] = spent.get(one.how, 0.0) + seconds
    return spent


def changes(gate, last: int) -> int:
    """How often another worker served than the request before, of the last ones."""
    served = [outcome.worker for outcome in gate.outcomes[-last:]]
    return sum(one != other for one, other in pairwise(served))


async def measure(
    folder: Path, binary: Path | None, mix: str, kinds: list[str], rng: random.Random
) -> None:
    """One line."""
    groups = {"planned": ("a", "b"), "a": ("a",), "b": ("b",)}
    turns: list[Turn] = []
    async with AsyncExitStack() as stack:
        gates = {
            how: await stack.enter_async_context(one_gpu(folder / how, binary, *names))
            for how, names in groups.items()
        }
        for kind in kinds:
            order = rng.sample([*groups], len(groups))
            turns += [await turn(gates[how], how, kind) for how in order]
        both = gates["planned"]
        swaps = changes(both, len(kinds))
        few = [*PROMPTS] * (EACH // 2)
        pinned = [await turn(both, "each", kind, BEST[kind]) for kind in few]
        load = {w.name: w.record.load_s for w in both.fleet.everything()}
    raw = {how: sum(t.seconds + t.swap_s for t in turns if t.how == how) for how in groups}
    click.echo(f"{mix}, {len(kinds)} requests, {swaps} swaps; loads {load}")
    for what, spent in (("as measured", raw), ("at mean speeds", alike(turns))):
        ratio = spent["planned"] / min(spent["a"], spent["b"])
        told = ", ".join(f"{how} {seconds:.1f} s" for how, seconds in spent.items())
        click.echo(f"  {what}: {told}: planned/best {ratio:.3f}")
    each = sum(t.seconds for t in pinned) / EACH
    click.echo(
        f"  a request takes {raw['planned'] / len(kinds):.2f} s, with a swap each {each:.2f}"
    )


@click.command()
@click.option("--binary", type=click.Path(path_type=Path), help="A llama-server.")
@click.option("--mix", "names", multiple=True, default=("steady", "alternating", "bursty"))
@click.option("--requests", default=80, show_default=True)
def main(binary: Path | None, names: tuple[str, ...], requests: int) -> None:
    """One line per mix."""
    rng = random.Random(1)
    made = mixes(rng, requests)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="sr-swaps-") as folder:
            asyncio.run(measure(Path(folder), binary, name, made[name], rng))


if __name__ == "__main__":
    main()
