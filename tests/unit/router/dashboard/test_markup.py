"""Escaping, and how attributes are written."""

from __future__ import annotations

from router.dashboard.markup import Markup, el, join


def test_text_is_escaped_and_markup_is_not() -> None:
    assert el("p", "<b>&", Markup("<i>x</i>")) == "<p>&lt;b&gt;&amp;<i>x</i></p>"
    assert el("a", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;"></a>'


def test_attributes() -> None:
    assert el("input", type="checkbox", checked=True, disabled=False, id=None) == (
        '<input type="checkbox" checked>'
    )
    assert el("label", cls="a", for_="b", data_x="1") == (
        '<label class="a" for="b" data-x="1"></label>'
    )


def test_lists_flatten_and_nothing_is_nothing() -> None:
    assert join(["a", None, False, ["b", ["c"]], 0]) == "abc0"
