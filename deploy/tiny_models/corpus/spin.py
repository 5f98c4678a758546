"""A small grammar engine: alternatives in braces, rules and variables in angle brackets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

CHOICE = re.compile(r"\{([^{}]*)\}")
SLOT = re.compile(r"<(?:(\w+)=)?(\w+)>")


def top_level(text: str) -> list[str]:
    """Split at the bars that stand outside braces."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if char == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


class Spinner:
    """Expands texts such as "{a|one} <x=animal> ... the <x>"."""

    def __init__(self, rules: Mapping[str, str | list[str]], rng: random.Random) -> None:
        self.rules = {k: v if isinstance(v, list) else top_level(v) for k, v in rules.items()}
        self.rng = rng

    def __call__(self, text: str, bound: dict[str, str] | None = None) -> str:
        """Expand until nothing is left to choose; `bound` keeps variables between calls."""
        memory = {} if bound is None else bound
        while True:
            text, choices = CHOICE.subn(lambda m: self.rng.choice(m[1].split("|")), text)
            text, slots = SLOT.subn(lambda m: self.fill(m[1], m[2], memory), text)
            if not choices and not slots:
                return text

    def fill(self, variable: str | None, name: str, memory: dict[str, str]) -> str:
        """A variable's value if it has one, else a fresh expansion of the rule."""
        if name in memory:
            return memory[name]
        value = self(self.rng.choice(self.rules[name]), memory)
        if variable is not None:
            memory[variable] = value
        return value
