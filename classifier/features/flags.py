"""What the request's fields settle before any text is read: thinking switches and forced formats.

Counterpart: `classifier.rules`, which turns a settled flag into an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from classifier.features.base import PromptText

_OFF_EFFORTS: Final = frozenset({"none", "minimal", "off", "disabled"})
_ON_EFFORTS: Final = frozenset({"low", "medium", "high", "xhigh", "max", "auto", "enabled", "on"})
_SCHEMA_FORMATS: Final = frozenset({"json_object", "json_schema"})
_GRAMMAR_KEYS: Final = ("grammar", "json_schema", "guided_json", "guided_grammar", "guided_regex")
_THINKING_KEYS: Final = ("enable_thinking", "thinking", "reasoning_effort", "reasoning")
_BUDGET_KEYS: Final = ("thinking_budget", "reasoning_budget", "thinking_budget_tokens")
_KEYS: Final = frozenset(
    {
        *_GRAMMAR_KEYS,
        *_THINKING_KEYS,
        *_BUDGET_KEYS,
        "chat_template_kwargs",
        "response_format",
        "text",
        "tool_choice",
        "input_prefix",
        "input_suffix",
        "prediction",
    }
)
_LIMIT_KEYS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens", "n_predict")
_LIMITS: Final = frozenset(_LIMIT_KEYS)
_CODE_FENCE_PREFILL: Final = "```"


class Flags(NamedTuple):
    """`forced` is the kind that the fields force, or "" (the text decides)."""

    thinking: bool
    thinking_said: bool
    forced: str
    has_grammar: bool
    has_tools: bool
    max_tokens: int | None
    schema_hash: str


def read_flags(text: PromptText, default_thinking: bool) -> Flags:
    """The settled part of a request; `default_thinking` is what the worker does unless told."""
    if not text.prefill and _KEYS.isdisjoint(text.payload) and "think" not in text.system:
        return _without_fields(text, default_thinking)
    said = _thinking(text)
    schema = _schema(text.payload)
    return Flags(
        thinking=default_thinking if said is None else said,
        thinking_said=said is not None,
        forced=_forced(text, schema is not None),
        has_grammar=schema is not None,
        has_tools=bool(text.tool_names),
        max_tokens=_max_tokens(text.payload),
        schema_hash=_digest(schema) if schema is not None else "",
    )


def _without_fields(text: PromptText, default_thinking: bool) -> Flags:
    """The common case: a body that sets none of the fields read here."""
    said = _thinking_switch(text)
    thinking = default_thinking if said is None else said
    limit = _max_tokens(text.payload)
    return Flags(thinking, said is not None, "", False, bool(text.tool_names), limit, "")


def _thinking(text: PromptText) -> bool | None:
    """Hard "off" beats everything, then a text switch, then a hard "on" (as chat templates do)."""
    if text.prefill:
        stripped = text.prefill.lstrip()
        return stripped.startswith("<think") and "</think" not in stripped
    hard = _thinking_field(text.payload)
    if hard is False:
        return False
    soft = _thinking_switch(text)
    return hard if soft is None else soft


def _thinking_field(payload: Mapping[str, Any]) -> bool | None:
    template = payload.get("chat_template_kwargs")
    sources = (template, payload) if isinstance(template, Mapping) else (payload,)
    for source in sources:
        for key in _THINKING_KEYS:
            if key in source and (said := _switch(source[key])) is not None:
                return said
    for key in _BUDGET_KEYS:
        budget = payload.get(key)
        if isinstance(budget, int) and not isinstance(budget, bool) and budget >= 0:
            return budget > 0
    return None


def _switch(value: object) -> bool | None:
    """A boolean, an effort word, or a mapping that carries one; None if it says nothing."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.lower()
        return True if word in _ON_EFFORTS else False if word in _OFF_EFFORTS else None
    if isinstance(value, Mapping):
        for key in ("enabled", "effort", "type"):
            inner = value.get(key)
            if isinstance(inner, (bool, str)) and (said := _switch(inner)) is not None:
                return said
        if isinstance(value.get("max_tokens"), int):
            return bool(value["max_tokens"])
    return None


def _thinking_switch(text: PromptText) -> bool | None:
    """The last of /think and /no_think in the user's turn, else in the system prompt."""
    for window in (text.window, text.system):
        if "/" not in window or "think" not in window:
            continue
        words = window.split()
        for word in reversed(words):
            if word in ("/no_think", "/nothink"):
                return False
            if word == "/think":
                return True
    return None


def _schema(payload: Mapping[str, Any]) -> object | None:
    """The schema or grammar that binds the answer, if any."""
    for key in ("response_format", "text"):
        value = payload.get(key)
        if isinstance(value, Mapping):
            inner = value.get("format") if key == "text" else value
            kind = inner.get("type") if isinstance(inner, Mapping) else None
            if isinstance(kind, str) and kind in _SCHEMA_FORMATS:
                return inner
    for key in _GRAMMAR_KEYS:
        value = payload.get(key)
        if value is not None and value not in ("", {}, False):
            return value  # type: ignore[no-any-return]
    return None


def _forced(text: PromptText, has_schema: bool) -> str:
    if text.tool_names and _tool_forced(text.payload.get("tool_choice")):
        return "tool_call"
    if has_schema:
        return "json"
    if text.prefill:
        return _prefilled(text.prefill)
    if "input_prefix" in text.payload or "input_suffix" in text.payload:
        return "code"
    return "rewrite" if text.payload.get("prediction") else ""


def _tool_forced(choice: object) -> bool:
    if isinstance(choice, Mapping):
        return choice.get("type") not in ("auto", "none", None)
    return choice in ("required", "any")


def _prefilled(prefill: str) -> str:
    """The kind an answer that begins like this has, or ""."""
    body = prefill.rsplit("</think>", 1)[-1].strip()
    fence = body.rfind(_CODE_FENCE_PREFILL)
    if fence >= 0:
        return "json" if body[fence + 3 : fence + 7].lower() == "json" else "code"
    first = body[:1]
    if first in ("{", "["):
        return "json"
    if first == "|":
        return "table"
    if body.startswith(("- ", "1. ", "1) ", "* ")) or body in ("-", "*", "1.", "1)"):
        return "list"
    return ""


def _max_tokens(payload: Mapping[str, Any]) -> int | None:
    if _LIMITS.isdisjoint(payload):
        return None
    for key in _LIMIT_KEYS:
        value = payload.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _digest(schema: object) -> str:
    return blake2b(repr(schema).encode("utf-8", "replace"), digest_size=8).hexdigest()
