"""What stands around the last user turn: system prompt, previous turns, tools, special fields."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from classifier.features.instruction import NEAR_WORDS, Hit, add_limits, hits_of
from classifier.features.words import Entry, entries, spaceless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from classifier.features.base import PromptText

SHORT_WORDS: Final = 12
SYSTEMS_KEPT: Final = 512
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|_|\.")
_DOING: Final = frozenset({"ACTION", "WORLD", "FIND", "TRANSFORM"})
_STOP_STEMS: Final = frozenset(
    [
        "the",
        "a",
        "an",
        "of",
        "to",
        "for",
        "and",
        "or",
        "is",
        "in",
        "on",
        "from",
        "with",
        "this",
        "use",
        "you",
        "can",
        "api",
        "by",
        "get",
        "tool",
        "name",
    ]
)


def add_system(text: PromptText, out: list[str]) -> None:
    """Concepts of the system prompt and their neighbours."""
    if text.system:
        out.extend(_system_names(text.system))


@lru_cache(maxsize=SYSTEMS_KEPT)
def _system_names(system: str) -> tuple[str, ...]:
    """Remembered: an application sends the same system prompt with every request."""
    out: list[str] = []
    hits = hits_of(entries(system))
    if not system.isascii():
        hits += [(at * 2, concept) for at, concept in enumerate(spaceless(system)[0])]
    last_at, last = -99, ""
    for at, concept in hits:
        out.append("s:" + concept)
        if at - last_at <= NEAR_WORDS:
            out.append(f"s:{last}>{concept}")
        last_at, last = at, concept
    add_limits(hits, "s:", out)
    return tuple(dict.fromkeys(out))


def shape_of_answer(answer: str) -> str:
    """What the previous answer was, from its first characters: code, json, table, list, prose."""
    start = answer.lstrip()
    if start.startswith("```") or "\n```" in start:
        return "json" if start[3:7] == "json" else "code"
    if start[:1] in ("{", "["):
        return "json"
    if start.startswith("|") or "\n|" in start:
        return "table"
    if start.startswith(("- ", "* ", "1. ", "1) ")) or "\n- " in start or "\n2" in start:
        return "list"
    return "prose"


def add_previous(text: PromptText, hits: Sequence[Hit], n_words: int, out: list[str]) -> None:
    """The last answer's shape, alone and with what is now asked."""
    if not text.previous_answer:
        return
    shape = shape_of_answer(text.previous_answer)
    short = n_words <= SHORT_WORDS
    out.append("p:" + shape)
    if short:
        out.append("p:short")
        out.append(f"p:{shape}&short")
    for concept in {concept for _, concept in hits[:8]}:
        out.append(f"p:{shape}&{concept}")
        if short:
            out.append("p:s&" + concept)
    if not hits:
        out.append(f"p:{shape}&nothing")


def add_tools(text: PromptText, words: Sequence[Entry], out: list[str]) -> None:
    """Whether the turn talks about what the tools do (an answered call usually ends in words)."""
    if text.last_role in ("tool", "function"):
        out.append("t:answered")
    if not text.tool_names:
        return
    stems, concepts = _offered(text.tool_words)
    shared = stems & {entry[0] for entry in words}
    meant = concepts & {entry[1] for entry in words}
    level = min(len(shared), 3)
    out.append(f"t:shared{level}")
    out.append("t:meant" if meant else "t:other")
    out.extend({"t:" + entry[1] for entry in words[:SHORT_WORDS] if entry[1]})


@lru_cache(maxsize=SYSTEMS_KEPT)
def _offered(tool_words: str) -> tuple[frozenset[str], frozenset[str]]:
    """Stems of what the tools are called and do, and their concepts of doing; remembered like
    system prompts, for the same reason."""
    offered = entries(_CAMEL.sub(" ", tool_words))
    stems = frozenset(entry[0] for entry in offered) - _STOP_STEMS
    return stems, frozenset(entry[1] for entry in offered) & _DOING


def add_fields(text: PromptText, out: list[str]) -> None:
    """Images, raw completions, a text-only response format, logit limits."""
    if text.has_images:
        out.append("k:image")
    if text.is_completion:
        out.append("k:completion")
    if text.payload.get("stop") and text.is_completion:
        out.append("k:stop")
