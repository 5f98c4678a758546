"""Conversations packed into rows of tokens with a weight for each."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import vocabulary
from corpus.chat import Chat
from shape import special
from tqdm import tqdm

if TYPE_CHECKING:
    from pathlib import Path

ROW = 512
# Prompts are learned a little, so that the trunk reads them, but answers are what counts.
PROMPT_WEIGHT = 0.1


def build(folder: Path, rows: int, seed: int = 1) -> None:
    """Write tokenizer.json (if missing), tokens.npy [rows, ROW+1] and weights.npy like it."""
    path = folder / "tokenizer.json"
    if not path.exists():
        sample = islice(Chat(seed + 1000), 12_000)
        vocabulary.train(("".join(t for t, _ in doc) for doc in sample), path)
    tokenizer = vocabulary.load(path)
    need = rows * (ROW + 1)
    ids = np.empty(need + 4096, dtype=np.uint16)
    weights = np.empty(need + 4096, dtype=np.float32)
    at = 0
    end = special("<|endoftext|>")
    with tqdm(total=need, desc="corpus", mininterval=5) as bar:
        for document in Chat(seed):
            start = at
            for text, is_answer in document:
                got = tokenizer.encode(text).ids
                ids[at : at + len(got)] = got
                weights[at : at + len(got)] = 1.0 if is_answer else PROMPT_WEIGHT
                at += len(got)
            if at % 2:
                ids[at], weights[at] = end, PROMPT_WEIGHT
                at += 1
            bar.update(at - start)
            if at >= need:
                break
    np.save(folder / "tokens.npy", ids[:need].reshape(rows, ROW + 1))
    np.save(folder / "weights.npy", weights[:need].reshape(rows, ROW + 1))
