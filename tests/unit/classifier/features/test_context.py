import pytest

from classifier.features import extract
from classifier.features.context import shape_of_answer

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city"}}


def names(messages, **fields):
    return extract({"messages": messages, **fields}).names


@pytest.mark.parametrize(
    ("answer", "shape"),
    [
        ("```py\nx\n```", "code"),
        ("Here:\n```\nx\n```", "code"),
        ("```json\n{}\n```", "json"),
        ("[1, 2]", "json"),
        ("| a | b |\n|---|---|", "table"),
        ("- one\n- two", "list"),
        ("Names:\n1. Ann\n2. Bob", "list"),
        ("It rains.", "prose"),
    ],
)
def test_shapes_of_answers(answer, shape):
    assert shape_of_answer(answer) == shape


def test_a_short_follow_up_is_seen_with_the_previous_answer():
    turns = [
        {"role": "user", "content": "reverse a list"},
        {"role": "assistant", "content": "```py\nxs[::-1]\n```"},
        {"role": "user", "content": "explain it"},
    ]
    assert {"p:code", "p:code&short", "p:code&EXPLAIN"} <= names(turns)


def test_system_prompts_give_concepts_and_limits():
    system = {"role": "system", "content": "Answer with JSON only. Never write code."}
    got = names([system, {"role": "user", "content": "hi"}])
    assert {"s:JSON", "s:only:JSON", "s:no:CODE"} <= got


def test_tools_and_whether_the_turn_is_about_them():
    about = names([{"role": "user", "content": "weather in Oslo?"}], tools=[TOOL])
    apart = names([{"role": "user", "content": "prove it"}], tools=[TOOL])
    assert {"t:meant", "t:shared1"} <= about
    assert {"t:other", "t:shared0"} <= apart
    assert not any(name.startswith("t:") for name in names([{"role": "user", "content": "hi"}]))


def test_an_answered_tool_call_is_seen():
    turns = [{"role": "user", "content": "weather?"}, {"role": "tool", "content": "{}"}]
    assert "t:answered" in names(turns, tools=[TOOL])
