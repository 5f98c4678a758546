"""The target's answers for the drafter's last lessons: mostly greedy, one conversation a row."""

from __future__ import annotations

import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import vocabulary
from corpus.chat import MIXTURE, Chat
from dataset import PROMPT_WEIGHT, ROW
from engine import engines
from heldout import HELD_OUT
from selfplay import answer
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[2]))
from router.bench.workload import PROMPTS
from workers.tiny.deepen import deepen

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOTS = 40
# Many short answers teach more than few long ones: what overfits is the number of prompts.
LENGTH = 180
PROSE = {"english": 10, "russian": 10, "manual": 1}
# What the drafter is for: more of the kinds that it was worst at, and no prose.
PREDICTABLE = {k: n for k, n in MIXTURE.items() if k not in PROSE} | {
    "count": 90,
    "extract": 110,
    "yaml": 40,
    "csv": 40,
    "list": 100,
    "sequence": 50,
    "howto": 40,
    "table": 130,
}
PROSE_SHARE = 0.05
# Share of the prompts whose wording no template has.
ODD_SHARE = 0.5
BEFORE = ("Please, ", "I need this: ", "Hello! ", "Can you help? ", "Пожалуйста, ", "Мне нужно: ")
AFTER = (" Please.", " Thanks!", ", please", " Be brief.", " Спасибо!", "?", ".", "!", " for me")
QUESTION = re.compile(r"(?<=user\n)[^\n]+(?=<\|im_end\|>\n<\|im_start\|>assistant\n[^\n]*\s*$)")


def plain(text: str) -> str:
    """The words alone, to compare prompts."""
    return " ".join(re.findall(r"\w+", text.lower()))


# What the trio is measured with is not learned.
TESTS = {plain(p) for ps in HELD_OUT.values() for p in ps} | {plain(p.text) for p in PROMPTS}


def reworded(rng: random.Random, ask: str) -> str:
    """The question with a word lost or moved, or something polite around it."""
    words = ask.split(" ")
    for _ in range(rng.choice((0, 1, 1, 2))):
        word = words.pop(rng.randrange(len(words))) if len(words) > 3 else ""
        if word and rng.random() < 0.4:
            words.insert(rng.randrange(len(words) + 1), word)
    ask = " ".join(words)
    if rng.random() < 0.25:
        ask = rng.choice(BEFORE) + ask[:1].lower() + ask[1:]
    return ask.rstrip(".?!") + rng.choice(AFTER) if rng.random() < 0.4 else ask


def prompts(seed: int) -> Iterator[tuple[str, bool]]:
    """(conversation up to its last answer, whether to answer greedily), without end."""
    rng = random.Random(seed)
    sources = {True: iter(Chat(seed, PREDICTABLE)), False: iter(Chat(seed + 1, PROSE))}
    while True:
        greedy = rng.random() >= PROSE_SHARE
        text = "".join(piece for piece, _ in next(sources[greedy])[:-1])
        if rng.random() < ODD_SHARE:
            text = QUESTION.sub(lambda m: reworded(rng, m[0]), text)
        asked = re.findall(r"(?<=user\n)[^<]+", text)
        if not any(plain(ask) in TESTS for ask in asked):
            yield text, greedy


def write(folder: Path, pieces: list[tuple[list[int], list[int]]]) -> None:
    """tokens.npy and weights.npy as dataset.build has them, but padded (weight 0), not packed."""
    tokens = np.zeros((len(pieces), ROW + 1), np.uint16)
    weights = np.zeros((len(pieces), ROW + 1), np.float32)
    for i, (prompt, got) in enumerate(pieces):
        ids = (prompt + got)[: ROW + 1]
        tokens[i, : len(ids)] = ids
        weights[i, : len(ids)] = 1.0
        weights[i, : len(prompt)] = PROMPT_WEIGHT
    folder.mkdir(exist_ok=True)
    np.save(folder / "tokens.npy", tokens)
    np.save(folder / "weights.npy", weights)


def run(folder: Path, target: Path, count: int, seed: int = 501) -> None:
    """Write folder/greedy with the answers to `count` prompts, growing as they come.

    The target answers in float32, as it is served: in q8_0 some greedy answers would differ.
    """
    wide = folder / "target-f32.gguf"
    deepen(target, wide, 0)
    tokenizer = vocabulary.load(folder / "tokenizer.json")
    wanted = []
    for text, greedy in prompts(seed):
        ids = tokenizer.encode(text).ids
        if len(ids) < ROW // 2:
            wanted.append((ids, greedy))
        if len(wanted) == count:
            break
    done: list[tuple[list[int], list[int]]] = []
    with (
        engines(wide, wide, ("ar",), SLOTS, SLOTS * 1024) as (engine,),
        ThreadPoolExecutor(SLOTS) as pool,
    ):
        jobs = [pool.submit(answer, engine, p, g, i, LENGTH) for i, (p, g) in enumerate(wanted)]
        for i, job in enumerate(tqdm(jobs, desc="answers", mininterval=5)):
            done.append((wanted[i][0], job.result()))
            if (i + 1) % 400 == 0:
                write(folder / "greedy", done)
    write(folder / "greedy", done)
