"""HTML and SVG as strings that know whether they are escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

VOID: Final = frozenset({"br", "hr", "input", "link", "meta"})


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def el(tag: str, *children: Any, **attributes: Any) -> Markup:
    """One element. Children are escaped unless they are Markup; lists are flattened.

    None as a child is nothing. `cls` is class, a trailing underscore is dropped (`for_`), other
    underscores become dashes; None and False leave an attribute out, True writes its name alone.
    """
    head = f"<{tag}{''.join(_attribute(n, v) for n, v in attributes.items())}>"
    if tag in VOID:
        return Markup(head)
    return Markup(f"{head}{join(children)}</{tag}>")


def join(children: Iterable[Any]) -> Markup:
    """All of them, one after the other."""
    return Markup("".join(_text(child) for child in children))


def _text(child: Any) -> str:
    if child is None or child is False:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, (list, tuple)):
        return join(child)
    return escape(str(child), quote=False)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = "class" if name == "cls" else name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {_CASED.get(name, name)}="{escape(str(value))}"'


_CASED: Final = {"viewbox": "viewBox"}
"""SVG's attributes that are not in lower case."""
