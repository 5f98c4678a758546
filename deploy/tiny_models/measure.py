"""Measure the trio on held-out prompts: acceptance, speed and equality of the three modes."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import MODES, cpu_seconds, engines
from heldout import HELD_OUT, PREDICTABLE, PROSE, fifty
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[2]))
from workers.tiny import COST, Cost, prepare

if TYPE_CHECKING:
    from engine import Engine

TOKENS = 200
CARD = Path(__file__).parents[2] / "workers" / "tiny" / "MODEL_CARD.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


@dataclass(slots=True)
class Cell:
    """Sums over the answers of one kind in one mode."""

    tokens: int = 0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    cpu: float = 0.0
    speeds: list[float] = field(default_factory=list)

    def add(self, timings: dict[str, Any], cpu: float) -> None:
        """Count one answer; the first token is free, as in the contract's definitions."""
        tokens = timings["predicted_n"] - 1
        accepted = timings.get("draft_n_accepted", 0)
        if tokens < 8:
            return
        self.tokens += tokens
        self.steps += tokens - accepted
        self.drafted += timings.get("draft_n", 0)
        self.accepted += accepted
        self.cpu += cpu
        self.speeds.append(timings["predicted_per_second"])

    @property
    def length(self) -> float:
        """Mean accepted length over all steps."""
        return self.tokens / max(1, self.steps)

    @property
    def speed(self) -> float:
        """Geometric mean of decode speeds, tokens per second of wall time."""
        return math.exp(sum(map(math.log, self.speeds)) / max(1, len(self.speeds)))

    @property
    def thrift(self) -> float:
        """Tokens per second of the server's processor time, reading the prompt included."""
        return self.tokens / self.cpu


Cells = dict[tuple[str, str], Cell]


def chat(
    engine: Engine, prompt: str, temperature: float, seed: int, thinking: bool
) -> dict[str, Any]:
    """One answer through the chat endpoint."""
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": TOKENS,
        "temperature": temperature,
        "seed": seed,
        "cache_prompt": False,
        "chat_template_kwargs": {"enable_thinking": thinking},
    }
    return engine.ask("/v1/chat/completions", body)


def measure(running: list[Engine], rounds: int) -> Cells:
    """Every held-out prompt in every mode, interleaved; prose at 0.8, the rest at 0."""
    cells: Cells = {}
    jobs = [
        (kind, prompt, 0.8 if kind in PROSE else 0.0, kind == "reasoning", turn)
        for turn in range(rounds)
        for kind, prompts in HELD_OUT.items()
        for prompt in prompts
    ]
    for i, (kind, prompt, temperature, thinking, turn) in enumerate(tqdm(jobs, mininterval=5)):
        order = running[i % 3 :] + running[: i % 3]
        for engine in order:
            before = cpu_seconds(engine)
            got = chat(engine, prompt, temperature, turn + 1, thinking)
            spent = cpu_seconds(engine) - before
            cells.setdefault((kind, engine.mode), Cell()).add(got["timings"], spent)
    return cells


def equality(running: list[Engine]) -> list[str]:
    """The prompts of fifty on which the modes' greedy texts differ."""
    odd = []
    for i, prompt in enumerate(tqdm(fifty(), mininterval=5)):
        texts = set()
        for engine in running:
            message = chat(engine, prompt, 0.0, 1, i % 5 == 0)["choices"][0]["message"]
            texts.add(f"{message.get('reasoning_content')}|{message.get('content')}")
        if len(texts) > 1:
            odd.append(prompt)
    return odd


def table(cells: Cells) -> str:
    """The measured table in Markdown."""
    lines = [
        "| kind | MTP accepted/drafted | MTP length | DFlash2 accepted/drafted | DFlash2 length"
        " | AR tok/s | MTP / AR | DFlash2 / AR | MTP / AR, CPU | DFlash2 / AR, CPU"
        " | fastest (CPU) |",
        "|" + " --- |" * 11,
    ]
    for kind in HELD_OUT:
        ar, mtp, flash = (cells[kind, mode] for mode in MODES)
        best = max(MODES, key=lambda mode: cells[kind, mode].thrift)
        shares = [
            f"{c.accepted}/{c.drafted} = {c.accepted / max(1, c.drafted):.2f}" for c in (mtp, flash)
        ]
        wall = [f"{c.speed / ar.speed:.2f}" for c in (mtp, flash)]
        cpu = [f"{c.thrift / ar.thrift:.2f}" for c in (mtp, flash)]
        lines.append(
            f"| {kind} | {shares[0]} | {mtp.length:.2f} | {shares[1]} | {flash.length:.2f}"
            f" | {ar.speed:.0f} | {' | '.join((*wall, *cpu))} | {best} |"
        )
    return "\n".join(lines)


def bars(cells: Cells) -> str:
    """The two figures the project asks for."""
    lines = []
    for mode in MODES[1:]:
        totals = []
        for kinds in (PREDICTABLE, PROSE):
            tokens = sum(cells[k, mode].tokens for k in kinds)
            totals.append(tokens / max(1, sum(cells[k, mode].steps for k in kinds)))
        lines.append(
            f"- {mode}: mean accepted length {totals[0]:.2f} on {', '.join(PREDICTABLE)}"
            " (temperature 0),"
            f" {totals[1]:.2f} on prose (temperature 0.8), ratio {totals[1] / totals[0]:.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and, with --card, write the result into the model card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path, help="folder for the prepared trio")
    parser.add_argument("--layers", type=int, default=COST.layers)
    parser.add_argument("--feed-forward", type=int, default=COST.feed_forward)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--skip-equality", action="store_true")
    parser.add_argument("--card", action="store_true")
    args = parser.parse_args()
    cost = Cost(args.layers, args.feed_forward)
    trio = prepare(args.cache, cost)
    with engines(trio.target, trio.draft) as running:
        cells = measure(running, args.rounds)
        text = (
            f"{cost.layers} layers of zeros, feed-forward {cost.feed_forward} wide, one thread a"
            f" server.\n\n{table(cells)}\n\n{bars(cells)}"
        )
        if not args.skip_equality:
            odd = equality(running)
            text += (
                f"\n- Greedy text identical in the three modes on {50 - len(odd)} of 50 prompts."
            )
            text += "".join(f"\n  - differs: {p}" for p in odd)
    sys.stdout.write(text + "\n")
    if args.card:
        card = CARD.read_text(encoding="utf-8")
        head, _, rest = card.partition(BEGIN)
        tail = rest.partition(END)[2]
        CARD.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
