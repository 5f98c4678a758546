"""Turns a request body into features: flags, lengths, and the names of what the text shows.

The order of work: windows (`base`), settled fields (`flags`), then the groups that name features.
The model is a table from these names to weights; nothing here knows a weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from classifier.features.base import PromptText, read
from classifier.features.context import add_fields, add_previous, add_system, add_tools
from classifier.features.flags import read_flags
from classifier.features.instruction import (
    Hit,
    add_concepts,
    add_ends,
    add_limits,
    add_spaceless,
    add_stems,
    hits_of,
)
from classifier.features.language import language_of, target_language
from classifier.features.shape import add_shape, asked_words
from classifier.features.words import Entry, entries
from classifier.quick import quick

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RequestFeatures", "extract", "is_stem"]

_MARKS: Final = frozenset(":>*&")
"""A name with one of these is a concept, a place or a form; without, it is a word's stem."""


@quick
@dataclass(frozen=True, slots=True)
class RequestFeatures:
    """Everything the classifier uses of a request; equal bodies give equal features.

    Lengths are in characters, `max_tokens` in tokens. `forced` is the kind that the fields force
    ("" if the text decides); `asked_words` is a length the text names; `names` are the features the
    text shows.
    """

    prompt_chars: int
    user_chars: int
    n_messages: int
    has_images: bool
    has_tools: bool
    has_grammar: bool
    max_tokens: int | None
    language: str
    thinking: bool
    thinking_said: bool
    forced: str
    schema_hash: str
    asked_words: int | None
    names: frozenset[str]


def is_stem(name: str) -> bool:
    """Whether the name is a word's stem: it says more about the source of a text than the task."""
    return not _MARKS.intersection(name)


def extract(payload: Mapping[str, Any], *, default_thinking: bool = False) -> RequestFeatures:
    """Features of a chat, completion, responses or Anthropic body; never raises on odd input.

    `default_thinking` is whether the worker thinks when the request does not say.
    """
    text = read(payload)
    flags = read_flags(text, default_thinking)
    first = entries(text.first)
    last = entries(text.last) if text.last else []
    # An ASCII text is Latin; otherwise the scripts of the words, one letter each.
    scripts = "" if text.window.isascii() else "".join([entry[2] for entry in first + last])
    names = _names(text, first, last, "z" in scripts)
    language = language_of(scripts, text.window, names)
    if "lead:TRANSLATE" in names:
        language = target_language(first + last) or language
    # By position, as in `base.read`.
    return RequestFeatures(
        text.prompt_chars,
        text.user_chars,
        text.n_messages,
        text.has_images,
        flags.has_tools,
        flags.has_grammar,
        flags.max_tokens,
        language,
        flags.thinking,
        flags.thinking_said,
        flags.forced,
        flags.schema_hash,
        asked_words(text.window) if "c:LENGTH" in names else None,
        names,
    )


def _names(
    text: PromptText, first: list[Entry], last: list[Entry], spaceless: bool
) -> frozenset[str]:
    """All feature names; `spaceless` says that the text has runs that no space divides."""
    out: list[str] = []
    hits = _line(text.first, first, spaceless, out)
    if last:
        hits = hits + _line(text.last, last, spaceless, out)
    add_ends(first, last or first, text.window, out)
    concepts = [concept for _, concept in hits]
    if "NEG" in concepts or "ONLY" in concepts:
        add_limits(hits, "", out)
    add_shape(text, concepts, out)
    add_system(text, out)
    add_previous(text, hits, len(first) + len(last), out)
    add_tools(text, first + last, out)
    add_fields(text, out)
    return frozenset(out)


def _line(line: str, words: list[Entry], spaceless: bool, out: list[str]) -> list[Hit]:
    """Adds one instruction line's stems and concepts; gives its concepts with their places."""
    hits = hits_of(words)
    if spaceless:
        hits = hits + add_spaceless(line, out)
    add_stems(words, out)
    add_concepts(hits, out)
    return hits
