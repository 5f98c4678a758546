"""Splits text into words and looks each up once: its stem, its concept, its script.

Lookups are remembered in a bounded table, so that a word seen before costs one dictionary access;
the table changes speed only, never an answer.
"""

from __future__ import annotations

import re
from itertools import pairwise
from sys import intern
from typing import Final

from classifier.features.lexicon import CONCEPTS, ZH_CONCEPTS

STEM_LETTERS: Final = 5
MEMO_SIZE: Final = 32_768
MAX_WORD: Final = 40

_WORD: Final = re.compile(r"\w+")
_ASCII: Final = bytes(range(128))
_ASCII_WORDS: Final = bytes.maketrans(
    _ASCII, bytes(code if chr(code).isalnum() or code == 95 else 32 for code in _ASCII.lower())
)
"""ASCII letters to small ones, whatever is no part of a word (`_` is) to a space."""

_CJK_RUN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


Entry = tuple[str, str, str]
"""Stem (the feature's name), concept or "", and script: l(atin), c(yrillic), z (Chinese, Japanese,
Korean), n(umber), o(ther). A plain tuple: indexing it is the inner loop."""


def _compile(table: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    exact: dict[str, str] = {}
    prefix: dict[str, str] = {}
    for concept, words in table.items():
        for word in words.lower().replace("ё", "е").split():
            target = prefix if word.endswith("*") else exact
            target.setdefault(word.rstrip("*"), concept)
    return exact, prefix


_EXACT, _PREFIX = _compile(CONCEPTS)
_PREFIX_LENGTHS: Final = sorted({len(key) for key in _PREFIX}, reverse=True)
SPACELESS_CHARS: Final = 160
"""Characters looked at in scripts without spaces: each says about as much as a word."""


def _by_first_character(table: dict[str, str]) -> dict[str, tuple[tuple[str, str], ...]]:
    pairs = [(text, concept) for concept, row in table.items() for text in row.split()]
    pairs.sort(key=lambda pair: -len(pair[0]))
    firsts = {text[0] for text, _ in pairs}
    return {first: tuple(pair for pair in pairs if pair[0][0] == first) for first in firsts}


_ZH: Final = _by_first_character(ZH_CONCEPTS)


def _concept(word: str) -> str:
    found = _EXACT.get(word)
    if found is not None:
        return found
    for length in _PREFIX_LENGTHS:
        if length <= len(word) and (found := _PREFIX.get(word[:length])) is not None:
            return found
    return ""


def _script(first: str) -> str:
    code = ord(first)
    if code < 0x250:
        return "l"
    if 0x400 <= code < 0x530:
        return "c"
    return "z" if 0x3040 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7AF else "o"


def _look_up(word: str) -> Entry:
    if word[0].isdigit():
        return ("#", "NUM", "n")
    plain = word.replace("ё", "е")
    script = _script(plain[0])
    if script == "z":
        return ("", "", "z")
    # Interned, so that a table of names knows the stem by its address.
    return (intern(plain[:STEM_LETTERS]), _concept(plain), script)


class _Memo(dict[str, Entry]):
    """Word to entry, filled on demand and emptied when full."""

    def __missing__(self, word: str) -> Entry:
        entry = _look_up(word[:MAX_WORD])
        if len(word) > MAX_WORD:
            return entry
        if len(self) >= MEMO_SIZE:
            self.clear()
        self[word] = entry
        return entry


_MEMO: Final = _Memo()


def entries(text: str) -> list[Entry]:
    """The words of `text` in order, looked up."""
    if "+" in text or "#" in text:  # one character is found in a tenth of the time of two
        text = text.lower().replace("c++", "cpp").replace("c#", "csharp")
    if text.isascii():
        # A fifth of the expression's time, on the commonest input.
        words = text.encode("ascii").translate(_ASCII_WORDS).decode("ascii").split()
    else:
        words = _WORD.findall(text.lower())
    return list(map(_MEMO.__getitem__, words))


def spaceless(text: str) -> tuple[list[str], list[str]]:
    """Concepts in order of place, and character pairs, of the Chinese, Japanese, Korean runs."""
    joined = "\n".join(_CJK_RUN.findall(text))[:SPACELESS_CHARS]
    found: list[str] = []
    for at, character in enumerate(joined):
        for word, concept in _ZH.get(character, ()):
            if joined.startswith(word, at):
                found.append(concept)
                break
    pairs = [first + second for first, second in pairwise(joined)]
    return found, [pair for pair in pairs if "\n" not in pair]
