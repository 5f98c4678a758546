"""The byte-level BPE of the trio: trained on its own corpus, split like qwen35."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from shape import SPECIALS, VOCAB
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, trainers

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# What llama.cpp does for the pre-tokenizer named qwen35.
SPLIT = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
    r"|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split_like_qwen35(model: models.BPE) -> Tokenizer:
    """A tokenizer with this model, still without the special tokens."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def train(texts: Iterable[str], path: Path) -> Tokenizer:
    """Train, append the special tokens as the last ids, save as JSON."""
    tokenizer = split_like_qwen35(models.BPE())
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    size = VOCAB - len(SPECIALS)
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, show_progress=False, max_token_length=24
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(s, normalized=False) for s in SPECIALS])
    if tokenizer.get_vocab_size() != VOCAB:
        raise ValueError("the sample text is too small for the vocabulary")
    tokenizer.save(str(path))
    return tokenizer


def rebuild(tokens: list[str], merges: list[str], path: Path) -> None:
    """Save the tokenizer whose tables a GGUF file carries."""
    learned = {t: i for i, t in enumerate(tokens[: -len(SPECIALS)])}
    pairs = [(a, b) for a, _, b in (m.partition(" ") for m in merges)]
    tokenizer = split_like_qwen35(models.BPE(vocab=learned, merges=pairs))
    tokenizer.add_special_tokens([AddedToken(s, normalized=False) for s in SPECIALS])
    tokenizer.save(str(path))


def load(path: Path) -> Tokenizer:
    """The saved tokenizer."""
    return Tokenizer.from_file(str(path))


def tables(path: Path) -> tuple[list[str], list[str]]:
    """Tokens in id order (specials last) and merges, as GGUF wants them."""
    model = json.loads(path.read_text(encoding="utf-8"))["model"]
    tokens = [t for t, _ in sorted(model["vocab"].items(), key=lambda kv: kv[1])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return [*tokens, *SPECIALS], merges
