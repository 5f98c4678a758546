import re
from random import Random

import pytest

from classifier.features import extract
from classifier.features.base import read
from classifier.features.shape import add_shape


def names(text):
    return extract({"messages": [{"role": "user", "content": text}]}).names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("```py\nx = 1\n```", "x:fence"),
        ('{"a": 1}', "x:json"),
        ("solve 3x + 2 = 11", "x:formula"),
        ("what is √2", "x:formula"),
        ("Pick one: A) red B) blue", "x:options"),
        ('Say "yes" or "no".', "x:choice"),
        ("Ответь да или нет: снег белый?", "x:choice"),
        ("How do I sort a list in Python?", "x:howto&tech"),
        ("Как отсортировать массив на Go?", "x:howto&tech"),
        ("Is it late?", "e:?"),
        ("现在几点\uff1f", "e:?"),
        ("def f(a):\n    return g(a);\n", "x:call"),
        ("Anna has 5 apples and gives 2 away. How many are left?", "n:problem"),
    ],
)
def test_marks(text, name):
    assert name in names(text)


@pytest.mark.parametrize("text", ["the and/or question", "well-being", "a > b story of love"])
def test_ordinary_signs_are_no_formula(text):
    assert "x:formula" not in names(text)


PIECES = (
    *("```", '{"', "</", "|--", "://", "___", "()", "\n- ", "\n-", "\n1", "...", "«", "%"),
    *(");", ") {", "){", "):", "def ", "SELECT ", "A)", "B)", "A.", "B.", "b)", "a)", "А)", "Б)"),
    *("x = 1", "n/3", ") * (", "= -", "x = \uff11", "²", "$$", "\\(", "×2", "/no", "<n", "ok/ 2"),
    *('"yes" or "no"', "'a' or 'b'", '"да" или "нет"', '"a", or "b"', " ", "word", "слово", "\n"),
)


MARKS = {
    "x:fence": "```",
    "x:json": '{"',
    "x:markup": "</",
    "x:table": "|--",
    "x:url": "://",
    "x:blank": "___",
    "x:dash": "\n- ",
    "x:numbered": "\n1",
    "x:dots": "...",
    "x:quote": "«",
    "x:percent": "%",
}


def plainly(window):
    """The marks by looking for each in the whole window, one after the other."""
    found = {name for name, mark in MARKS.items() if mark in window}
    if ")" in window:
        pairs = [("A)", "B)"), ("А)", "Б)"), ("A.", "B."), ("А.", "Б."), ("a)", "b)")]
        if any(one in window and other in window for one, other in pairs):
            found.add("x:options")
    calls = [");", ") {", "){", "):"]
    if "\n" in window or "`" in window:
        calls += ["def ", "import ", "function ", "class ", "const ", "public ", "SELECT "]
    if any(mark in window for mark in calls):
        found.add("x:call")
    quoted = ['" or "', '", or "', '" или "', '" oder "', "' or '", "» или «"]
    if any(mark in window for mark in quoted):
        found.add("x:choice")
    marks = ["√", "²", "³", "∫", "∑", "π", "\\frac", "\\sqrt", "\\(", "$$"]
    formula = r"[=+*/^×÷<>≤≥](?<=[\d)xyn ].) ?[\d(\-xyn]"
    if any(mark in window for mark in marks) or re.search(formula, window):
        found.add("x:formula")
    return found


def test_looking_at_the_signs_first_changes_no_mark():
    rng = Random(0)
    names = {*MARKS, "x:options", "x:call", "x:choice", "x:formula"}
    seen = set()
    for _ in range(4000):
        window = "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 9)))[:100]
        text = read({"messages": [{"role": "user", "content": window}]})
        out: list[str] = []
        add_shape(text, [], out)
        assert names.intersection(out) == plainly(text.window), window
        seen |= names.intersection(out)
    assert seen == names
