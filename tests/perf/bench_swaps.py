"""Two workers that cannot be resident together, on the tiny trio: what planned swaps take.

`python tests/perf/bench_swaps.py [LLAMA_SERVER]`: for a steady, an alternating and a bursty mix the
seconds of the same requests, one after the other, with the group left to the plan, with each member
resident throughout, and (some requests of it) with a swap per request. About four minutes.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

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
REQUESTS, WARM, EACH, TOKENS = 120, 8, 6, 96
CLOCK = SystemClock()


def mixes(rng: random.Random) -> dict[str, list[str]]:
    """Classes of the requests, in order."""
    both = ("structured", "prose")
    bursty, kind = [], 0
    for _ in range(REQUESTS):
        kind ^= rng.random() < 0.1
        bursty.append(both[kind])
    return {
        "steady": ["prose" if rng.random() < 0.8 else "structured" for _ in range(REQUESTS)],
        "alternating": [both[i // 10 % 2] for i in range(REQUESTS)],
        "bursty": bursty,
    }


@asynccontextmanager
async def one_gpu(folder: Path, binary: Path | None):
    """A gateway before an agent whose two workers share a group."""
    trio = prepare(folder / "trio")
    shared = {"binary": binary, "exclusive_group": "gpu", "threads": 1, "context": 1024}
    specs = (
        WorkerSpec("a", "tiny", "ar", trio.target, **shared),
        WorkerSpec("b", "tiny", "dflash2", trio.target, trio.draft, **shared),
    )
    registry, stop = MemoryRegistry(CLOCK), asyncio.Event()
    options = AgentOptions(folder, SECRET, dict(os.environ), heartbeat=0.5, host="here")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run_agent(specs, registry, options, CLOCK, stop))
        async with gateway(registry=registry) as gate:
            await until(lambda: len(gate.fleet.everything()) == 2, 120.0)
            await resident(gate, "a")
            for name in ("b", "a"):
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


async def resident(gate, name: str) -> None:
    """Until that worker is resident; loaded if need be."""
    serving = {w.name for w in gate.fleet.everything() if w.record.state.serves}
    if name not in serving:
        await gate.client.post(f"/ops/workers/{name}/load", headers=ADMIN)
    await until(
        lambda: any(w.name == name and w.record.state.serves for w in gate.fleet.everything()),
        120.0,
    )


async def taken(gate, kinds: list[str], how: str) -> tuple[float, int]:
    """Seconds and starts for the mix; `how` is a worker's name, "plan" or "each"."""
    await resident(gate, how if how in ("a", "b") else "a")
    before, swaps, last = perf_counter(), 0, "a"
    for kind in kinds:
        pin = {"plan": "", "each": BEST[kind]}.get(how, how)
        await ask(gate, kind, pin)
        served = next((w.name for w in gate.fleet.everything() if w.record.state.serves), last)
        swaps, last = swaps + (served != last and how not in ("a", "b")), served
    return perf_counter() - before, swaps


async def main(binary: Path | None) -> None:
    """One line per mix."""
    with tempfile.TemporaryDirectory(prefix="sr-swaps-") as name:
        for mix, kinds in mixes(random.Random(1)).items():
            async with one_gpu(Path(name), binary) as gate:
                planned, swaps = await taken(gate, kinds, "plan")
                static = {how: (await taken(gate, kinds, how))[0] for how in ("a", "b")}
                few, _ = await taken(gate, kinds[:: len(kinds) // EACH][:EACH], "each")
                load = {w.name: w.record.load_s for w in gate.fleet.everything()}
            best = min(static.values())
            click.echo(
                f"{mix}: planned {planned:.1f} s with {swaps} swaps, always a {static['a']:.1f}, "
                f"always b {static['b']:.1f}, planned/best {planned / best:.3f}, "
                f"a swap per request about {few / EACH * len(kinds):.0f} s; loads {load}"
            )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
