"""Turns a request body into features: flags, lengths, and the names of what the text shows.

The order of work: windows (`base`), settled fields (`flags`), then the groups that name features.
The model is a table from these names to weights; nothing here knows a weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from classifier.features.base import PromptText, read
from classifier.features.context import add_fields, add_previous, add_system, add_tools
from classifier.features.flags import Flags, read_flags
from classifier.features.instruction import (
    Hit,
    add_concepts,
    add_limits,
    add_spaceless,
    add_stems,
    hits_of,
)
from classifier.features.language import language_of, target_language
from classifier.features.shape import add_shape
from classifier.features.words import Entry, entries

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RequestFeatures", "extract"]


@dataclass(frozen=True, slots=True)
class RequestFeatures:
    """Everything the classifier uses of a request; equal bodies give equal features.

    Lengths are in characters, `max_tokens` in tokens. `forced` is the kind that the fields force
    ("" if the text decides); `names` are the features the text shows.
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
    names: frozenset[str]


def extract(payload: Mapping[str, Any], *, default_thinking: bool = False) -> RequestFeatures:
    """Features of a chat, completion, responses or Anthropic body; never raises on odd input.

    `default_thinking` is whether the worker thinks when the request does not say.
    """
    text = read(payload)
    flags = read_flags(text, default_thinking)
    first = entries(text.first)
    last = entries(text.last) if text.last else []
    return _features(text, flags, first + last, _names(text, first, last))


def _names(text: PromptText, first: list[Entry], last: list[Entry]) -> frozenset[str]:
    out: list[str] = []
    hits = _hits(first, text.first, out)
    add_stems(first, out)
    add_concepts(hits, len(first), out)
    if last:
        last_hits = _hits(last, text.last, out)
        add_stems(last, out)
        add_concepts(last_hits, len(last), out)
        hits = hits + last_hits
    words = first + last
    add_limits(hits, "", out)
    add_shape(text, hits, out)
    add_system(text, out)
    add_previous(text, hits, len(words), out)
    add_tools(text, words, out)
    add_fields(text, out)
    return frozenset(out)


def _hits(words: list[Entry], line: str, out: list[str]) -> list[Hit]:
    hits = hits_of(words)
    if not line.isascii() and any(script == "z" for _, _, script in words):
        return hits + add_spaceless(line, out)
    return hits


def _features(
    text: PromptText, flags: Flags, words: list[Entry], names: frozenset[str]
) -> RequestFeatures:
    language = language_of(words, text.window, names)
    if "lead:TRANSLATE" in names:
        language = target_language(words) or language
    return RequestFeatures(
        prompt_chars=text.prompt_chars,
        user_chars=text.user_chars,
        n_messages=text.n_messages,
        has_images=text.has_images,
        has_tools=flags.has_tools,
        has_grammar=flags.has_grammar,
        max_tokens=flags.max_tokens,
        language=language,
        thinking=flags.thinking,
        thinking_said=flags.thinking_said,
        forced=flags.forced,
        schema_hash=flags.schema_hash,
        names=names,
    )
