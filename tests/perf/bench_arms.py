"""What draft lengths per request cost and bring, on the tiny trio with its honest step costs.

`python tests/perf/bench_arms.py LLAMA_SERVER [--table cost]` (the patched build). Two tables: plain
decoding in a drafting process against a process without a drafter, and one process behind the
gateway with each fixed length against the length that the policy chooses. All is interleaved; about
two minutes each on two idle cores.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click
import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from router.bench.workload import workload
from tests.support.gateway import SECRET, gateway
from tests.support.supervised import Published, host
from tests.support.waiting import until
from workers.arms import N_MAX
from workers.keys import worker_api_key
from workers.spec import WorkerSpec
from workers.supervisor import Supervisor
from workers.tiny import prepare

if TYPE_CHECKING:
    from workers.record import WorkerRecord

PROMPTS = (
    "Count from 1 to 60, separated by commas.",
    "Write a JSON object that describes a house with five rooms.",
    "Tell me a story about a lighthouse.",
)
COST_ROUNDS, TOKENS = 8, 128
WARM_ROUNDS, ROUNDS, PER_CLASS = 1, 2, 6


@asynccontextmanager
async def worker(binary: Path, folder: Path, mode: str, name: str):
    """One worker on one thread, ready."""
    trio = prepare(folder / "trio")
    draft = trio.draft if "dflash" in mode else None
    spec = WorkerSpec(
        name, "tiny", mode, trio.target, draft, binary=binary, threads=1, context=2048, slots=2
    )
    published = Published()
    supervisor = Supervisor(spec, host(folder, cluster_secret=SECRET), published)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run(start=True))
        await until(lambda: published.records and published.last.state.serves, 120.0)
        yield published.last
        supervisor.stop()


async def speed(record: WorkerRecord, prompt: str, length: int | None) -> float:
    """Decode tokens per second of one greedy answer, as the server tells."""
    headers = {"authorization": f"Bearer {worker_api_key(SECRET, record.name)}"}
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": TOKENS,
        "temperature": 0,
        "ignore_eos": True,
    }
    body |= {} if length is None else {N_MAX: length}
    async with httpx.AsyncClient(base_url=record.url, headers=headers, timeout=120.0) as http:
        answer = (await http.post("/v1/chat/completions", json=body)).raise_for_status().json()
    return float(answer["timings"]["predicted_per_second"])


async def cost_of_the_plain_arm(binary: Path, folder: Path) -> None:
    """Medians, and the median of the paired ratios."""
    async with AsyncExitStack() as stack:
        records = {
            mode: await stack.enter_async_context(worker(binary, folder, mode, mode))
            for mode in ("ar", "dflash2", "mtp-n3")
        }
        rows: dict[str, list[float]] = {mode: [] for mode in records}
        for _ in range(COST_ROUNDS):
            for prompt in PROMPTS:
                for mode, record in records.items():
                    rows[mode].append(await speed(record, prompt, None if mode == "ar" else 0))
    click.echo(f"plain decoding, tokens/s: {median(rows['ar']):.0f} in a process without a drafter")
    for mode in ("dflash2", "mtp-n3"):
        pairs = zip(rows[mode], rows["ar"], strict=True)
        ratio = median(mine / plain for mine, plain in pairs)
        click.echo(f"  n_max 0 of {mode}: {median(rows[mode]):.0f}, cost {1 - ratio:+.1%}")


async def routed_against_fixed(binary: Path, folder: Path) -> None:
    """Seconds of decoding for the same requests under each length, and as the policy chooses."""
    async with (
        worker(binary, folder, "dflash2", "one") as record,
        gateway(record) as gate,
    ):
        targets = ("ar", "dflash2-n3", "dflash2", "auto")
        seconds = dict.fromkeys(targets, 0.0)
        tokens = dict.fromkeys(targets, 0)
        used: dict[tuple[str, str], int] = {}
        rng = random.Random(1)
        for number in range(WARM_ROUNDS + ROUNDS):
            prompts = workload(rng, PER_CLASS)
            rng.shuffle(prompts)
            for prompt in prompts:
                for target in rng.sample(targets, len(targets)):
                    before = len(gate.outcomes)
                    body = prompt.body("tiny", max_tokens=TOKENS, seed=number)
                    headers = {"x-specroute-mode": target}
                    await gate.client.post("/v1/chat/completions", json=body, headers=headers)
                    await until(lambda n=before: len(gate.outcomes) > n)
                    done = gate.outcomes[-1]
                    if number < WARM_ROUNDS or not done.timings.predicted_ms:
                        continue
                    seconds[target] += done.timings.predicted_ms / 1000.0
                    tokens[target] += done.timings.predicted_n or 0
                    if target == "auto":
                        key = (prompt.workload_class, done.mode)
                        used[key] = used.get(key, 0) + 1
    click.echo("one DFlash2 process behind the gateway, decode tokens/s over the mix:")
    for target in targets:
        click.echo(f"  {target}: {tokens[target] / seconds[target]:.0f}")
    fixed = max(targets[:-1], key=lambda t: tokens[t] / seconds[t])
    gain = tokens["auto"] / seconds["auto"] / (tokens[fixed] / seconds[fixed])
    click.echo(f"  routed by arm against the best fixed length ({fixed}): {gain:.3f}")
    for (name, mode), count in sorted(used.items()):
        click.echo(f"    {name} by {mode}: {count}")


TABLES = {"cost": cost_of_the_plain_arm, "routed": routed_against_fixed}


@click.command()
@click.argument("binary", type=click.Path(path_type=Path))
@click.option("--table", "names", multiple=True, default=TABLES, type=click.Choice([*TABLES]))
def main(binary: Path, names: tuple[str, ...]) -> None:
    """The tables that are asked for."""
    for name in names:
        with tempfile.TemporaryDirectory(prefix="sr-arms-") as folder:
            asyncio.run(TABLES[name](binary, Path(folder)))


if __name__ == "__main__":
    main()
