"""What is wrong with a configuration, in words that an operator can act on."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Location = tuple[str | int, ...]  # of a value: section, key or index, key


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `path` is the file, or the environment variable; `line` counts from 1."""

    path: str
    line: int | None
    message: str
    fix: str

    def __str__(self) -> str:
        """`file:line: message. Fix.`"""
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.message}; {self.fix}"


class ConfigError(ValueError):
    """The configuration cannot be used; every problem at once."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem before its file and line are looked up."""

    location: Location
    message: str
    fix: str


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelling probably meant."""
    found = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean x?`, or the list to choose from."""
    words = sorted(known)
    near = nearest(word, words)
    return f"did you mean `{near}`?" if near else f"use one of: {', '.join(words)}"


def spelled(location: Location) -> str:
    """`workers[0].slots` for ("workers", 0, "slots")."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")
