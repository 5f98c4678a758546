"""Let the trained target answer corpus prompts: the text its drafters will meet."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import vocabulary
from corpus.chat import Chat
from dataset import PROMPT_WEIGHT, ROW
from engine import engines
from tqdm import tqdm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine import Engine

SLOTS = 24
LENGTH = 300
# Structured answers are mostly asked for greedily, prose with a temperature.
GREEDY_SHARE = 0.65


def answer(
    engine: Engine, prompt: list[int], greedy: bool, seed: int, length: int = LENGTH
) -> list[int]:
    """Generated token ids, the end token included."""
    body: dict[str, Any] = {
        "prompt": prompt,
        "n_predict": length,
        "temperature": 0.0 if greedy else 0.8,
        "seed": seed,
        "cache_prompt": False,
        "return_tokens": True,
    }
    got = engine.ask("/completion", body)
    return list(got["tokens"])


def prompts(folder: Path, seed: int) -> Iterator[list[int]]:
    """Token ids of conversations cut before their last answer."""
    tokenizer = vocabulary.load(folder / "tokenizer.json")
    for document in Chat(seed):
        yield tokenizer.encode("".join(text for text, _ in document[:-1])).ids


def write(folder: Path, pieces: list[tuple[list[int], list[int]]], newline: int) -> None:
    """Pack (prompt, answer) pairs into rows."""
    ids = [i for prompt, got in pieces for i in (*prompt, *got, newline)]
    weights = [w for p, g in pieces for w in ([PROMPT_WEIGHT] * len(p) + [1.0] * (len(g) + 1))]
    rows = len(ids) // (ROW + 1)
    if not rows:
        return
    out, size = folder / "own", rows * (ROW + 1)
    out.mkdir(exist_ok=True)
    np.save(out / "tokens.npy", np.array(ids[:size], dtype=np.uint16).reshape(rows, ROW + 1))
    np.save(out / "weights.npy", np.array(weights[:size], np.float32).reshape(rows, ROW + 1))


def run(folder: Path, target: Path, count: int, seed: int = 77) -> None:
    """Write folder/own with the answers to `count` prompts, growing as they come."""
    newline = vocabulary.load(folder / "tokenizer.json").token_to_id("Ċ")
    wanted = list(islice(prompts(folder, seed), count))
    greedy = np.random.default_rng(seed).random(count) < GREEDY_SHARE
    done: list[tuple[list[int], list[int]]] = []
    context = SLOTS * 1024
    with (
        engines(target, target, ("ar",), SLOTS, context) as (engine,),
        ThreadPoolExecutor(SLOTS) as pool,
    ):
        jobs = [
            pool.submit(answer, engine, p, bool(g), i)
            for i, (p, g) in enumerate(zip(wanted, greedy, strict=True))
        ]
        for i, job in enumerate(tqdm(jobs, desc="self-play", mininterval=5)):
            done.append((wanted[i], job.result()))
            if (i + 1) % 400 == 0:
                write(folder, done, newline)
    write(folder, done, newline)
