import pytest

from classifier.features import extract


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
