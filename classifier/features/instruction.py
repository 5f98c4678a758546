"""What the last user turn asks for: word stems, concepts, and concepts that stand together.

Only the first and the last line are read (see `base.edges`): that is where instructions stand when
a document or a piece of code is quoted between them.
"""

from __future__ import annotations

from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING, Final

from classifier.features.words import Entry, spaceless

if TYPE_CHECKING:
    from collections.abc import Sequence

Hit = tuple[int, str]
"""Word position and concept."""

NEAR_WORDS: Final = 4
LEAD_WORDS: Final = 16
REACH_WORDS: Final = 14

_FINAL_MARKS: Final = " \n.?!。？！"

_STEM: Final = itemgetter(0)

LEADS: Final = frozenset(
    [
        "WRITE",
        "MAKE",
        "EXPLAIN",
        "TELL",
        "SOLVE",
        "FIND",
        "EXTRACT",
        "TRANSLATE",
        "SUMMARISE",
        "REWRITE",
        "CONVERT",
        "COUNT",
        "LISTV",
        "CODEV",
        "FIX",
        "TRANSFORM",
        "CLASSIFY",
        "SORT",
        "ROLE",
        "ADVICE",
        "WHY",
        "WHAT",
        "HOW",
        "MANY",
        "COMPARE",
        "ACTION",
        "PLAN",
        "OUTPUT",
        "THINK",
        "OPINION",
        "FEEL",
    ]
)
OBJECTS: Final = frozenset(
    [
        "CODE",
        "TECH",
        "JSON",
        "TABLE",
        "LIST",
        "ITEMS",
        "STORY",
        "ESSAY",
        "MATH",
        "UNIT",
        "QUANT",
        "LOGIC",
        "PLAN",
        "DOC",
        "FORMAT",
        "LENGTH",
        "WORLD",
        "LANG",
        "NUM",
        "REF",
        "CLASSIFY",
        "SORT",
        "WORDS",
        "NEG",
        "STYLE",
    ]
)


def hits_of(entries: Sequence[Entry]) -> list[Hit]:
    """The words that have a concept, with their place."""
    return [(at, concept) for at, (_, concept, _) in enumerate(entries) if concept]


NEGATED: Final = frozenset(
    ["CODE", "JSON", "TABLE", "LIST", "FORMAT", "EXPLAIN", "TECH", "STORY", "SOLVE", "NUM"]
)
"""What a request may rule out or insist on ("no code", "only the table")."""

NEGATION_WORDS: Final = 5


class _Pairs(dict[str, dict[str, str]]):
    """The name of two concepts, by the first, then by the second: made once, there are few."""

    def __init__(self, sign: str) -> None:
        super().__init__()
        self.sign = sign

    def __missing__(self, first: str) -> dict[str, str]:
        made = self[first] = _Seconds(first + self.sign)
        return made


class _Seconds(dict[str, str]):
    def __init__(self, begin: str) -> None:
        super().__init__()
        self.begin = begin

    def __missing__(self, second: str) -> str:
        made = self[second] = intern(self.begin + second)
        return made


_ALONE: Final = _Seconds("c:")
_NEAR: Final = _Pairs(">")
_GOVERNED: Final = _Pairs("*")


def add_concepts(hits: Sequence[Hit], out: list[str]) -> None:
    """Concepts, neighbours, and the lead (the first verb-like concept) with what it governs."""
    last_at, last = -99, ""
    lead, lead_at = "", 0
    for at, concept in hits:
        out.append(_ALONE[concept])
        if at - last_at <= NEAR_WORDS:
            out.append(_NEAR[last][concept])
        last_at, last = at, concept
        if lead:
            if at - lead_at <= REACH_WORDS and concept in OBJECTS:
                out.append(_GOVERNED[lead][concept])
        elif at < LEAD_WORDS and concept in LEADS:
            lead, lead_at = concept, at
            out.append("lead:" + concept)
    if not lead:
        out.append("lead:")


def add_limits(hits: Sequence[Hit], mark: str, out: list[str]) -> None:
    """What is ruled out (`no:`) and what is insisted on (`only:`), with `mark` before."""
    negated = only = -99
    pending = ""
    pending_at = -99
    for at, concept in hits:
        if concept == "NEG":
            negated = at
        elif concept == "ONLY":
            only = at
            if at - pending_at <= 2:
                out.append(f"{mark}only:{pending}")
        elif concept in NEGATED:
            if at - negated <= NEGATION_WORDS:
                out.append(f"{mark}no:{concept}")
            if at - only <= NEGATION_WORDS:
                out.append(f"{mark}only:{concept}")
            pending, pending_at = concept, at


def add_stems(entries: Sequence[Entry], out: list[str]) -> None:
    """Distinct stems of the words."""
    out.extend(map(_STEM, entries))


def add_spaceless(text: str, out: list[str]) -> list[Hit]:
    """Concepts and character pairs of scripts that do not separate words."""
    concepts, pairs = spaceless(text)
    out.extend({"z" + pair for pair in pairs})
    return [(at * 2, concept) for at, concept in enumerate(concepts)]


def add_ends(first: Sequence[Entry], last: Sequence[Entry], text: str, out: list[str]) -> None:
    """The first word of the turn, alone and with the second, and its last one: "how many" and "is
    it" are no concepts, but say what is asked. Without spaces, two characters stand for a word."""
    if not first:
        return
    begin, end = first[0][0], last[-1][0]
    if not begin:
        begin = text[:2]
    elif len(first) > 1:
        out.append(f"^:{begin} {first[1][0]}")
    out.append("^:" + begin)
    out.append("$:" + (end or text.rstrip(_FINAL_MARKS)[-2:]))
