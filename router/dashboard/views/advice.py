"""What to change, in sentences with figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from router.dashboard.advice import advise
from router.dashboard.markup import Markup, el, join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.dashboard.advice import Advice
    from router.dashboard.page import Context
    from router.dashboard.words import Words

SIGNS: Final[Mapping[str, str]] = {"warn": "⚠", "note": "ℹ", "good": "✓"}
_SHARES: Final = ("share",)
_RATIOS: Final = ("speedup", "low", "high", "psi")
_COUNTS: Final = ("n", "missing", "requests", "above")


def content(context: Context) -> Markup:
    """One sentence each, the most pressing first."""
    words = context.words
    found = advise(context.snapshot)
    head = el("h1", words("view_advice"))
    if not found:
        return join([head, el("p", words("no_advice"), cls="empty")])
    return join([head, el("ul", [_item(words, item) for item in found], cls="advice")])


def _item(words: Words, item: Advice) -> Markup:
    level = el("strong", f"{SIGNS[item.level]} {words(f'level_{item.level}')}")
    return el("li", level, " ", sentence(words, item), cls=f"card {item.level}")


def sentence(words: Words, item: Advice) -> str:
    """The advice in words."""
    return words(item.key, **{name: _value(words, name, v) for name, v in item.values.items()})


def _value(words: Words, name: str, value: Any) -> str:
    if name in _SHARES:
        return words.percent(value)
    if name in _RATIOS:
        return words.ratio(value)
    if name in _COUNTS:
        return words.number(value)
    return str(value)
