"""Texts that PyYAML, or whoever reads on, would choke on; each ends in a finding with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.config import read_config
from workers.config.nodes import read_text


def _bomb():
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, after in zip("abcdefghi", "bcdefghij", strict=True):
        rows.append(f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]")
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a:\n  b: !include x.yaml", 2, "`a.b` has a tag that means nothing here: !include"),
        ("a: 1\nb: 2026-02-30", 2, "`b` looks like a YAML timestamp, but '2026-02-30' is none"),
        ("a: 2001-01-01T99:99:99Z", 1, "`a` looks like a YAML timestamp"),
        ("a: !!timestamp x", 1, "`a` looks like a YAML timestamp"),
        ("a: !!int abc", 1, "`a` looks like a YAML int, but 'abc' is none"),
        ("a: !!int ''", 1, "`a` looks like a YAML int"),
        ("a: !!bool maybe", 1, "`a` looks like a YAML bool"),
        ("a: =", 1, "`a` looks like a YAML value"),
        ("a: 0x" + "f" * 4500, 1, "`a` is too large a number"),
        ('a: "b\\0c"', 1, "`a` holds a NUL or half a character"),
        ('a: "\\ud83d\\ude00"', 1, "`a` holds a NUL or half a character"),
        ("a: 1\n[b, c]: 2", 2, "a key is no word"),
        ("&a [*a]: 2", 1, "a key is no word"),
        ('"\\0": 2', 1, "a key is no word"),
        ("a: 1\nb: &b [*b]", 2, "`b` is nested deeper than 50 levels by an alias"),
        ("a: &a {b: *a}", 1, "`a` is nested deeper than 50 levels by an alias"),
        ("a:\n  " + "[" * 60 + "]" * 60, 2, "is nested deeper than 50 levels"),
        ("a: " + "[" * 900 + "]" * 900, 1, "is nested deeper than 50 levels"),
        (_bomb(), 5, "aliases repeat more than 10000 values"),
        ("a: 1\nb: \x00", 2, "is not YAML: it holds the character '\\x00'"),
        ('a: "\\Uffffffff"', None, "is not YAML: "),
        ("a: 1\n---\nb: 2", 2, "is not YAML: but found another document"),
    ],
)
def test_what_cannot_be_read_is_a_finding(text, line, message):
    read = read_text(text)
    (finding,) = read.findings
    assert finding.message.startswith(message)
    assert read.lines.get(finding.location) == line


def test_a_long_tag_or_value_is_cut():
    for text in ("a: !" + "x" * 5000, "a: !!" + "x" * 5000, "a: !!int " + "x" * 5000):
        (finding,) = read_text(text).findings
        assert len(finding.message) < 120


def test_one_misread_value_leaves_the_others():
    read = read_text("a: {b: !!int x, c: 3}\nd: [2026-02-30, 4]\n")
    assert read.data == {"a": {"b": None, "c": 3}, "d": [None, 4]}
    assert [finding.location for finding in read.findings] == [("a", "b"), ("d", 0)]


def test_aliases_are_fine():
    read = read_text("a: &a {b: [1, 2]}\nc: [*a, *a]\n")
    assert read.findings == []
    assert read.data["c"] == [{"b": [1, 2]}, {"b": [1, 2]}]


_PIECES = [
    *("workers: ", "models: ", "learning: ", "name: a", "mode: ", "target: ", "env: ", "gpu: "),
    *(
        "[",
        "]",
        "{",
        "}",
        ", ",
        ": ",
        "- ",
        "\n",
        "\n  ",
        "&a ",
        "*a",
        "? ",
        "<<: ",
        "!!int ",
        "!x ",
    ),
    *(
        "2026-02-30",
        "1:2",
        "0x",
        "~b/c",
        "=",
        "|",
        '"',
        "'",
        "\\0",
        "#",
        "%",
        "off",
        "null",
        "1e999",
    ),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=25).map("".join))
def test_no_text_raises(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text)
    _, problems = read_config(path, {})
    assert all(str(problem).startswith(f"{path}") for problem in problems)
