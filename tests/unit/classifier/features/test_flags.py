import pytest

from classifier.features.base import read
from classifier.features.flags import read_flags

ASK = {"messages": [{"role": "user", "content": "What is rain?"}]}
TOOLS = [{"type": "function", "function": {"name": "look_up"}}]


def flags(default=False, **fields):
    return read_flags(read({**ASK, **fields}), default)


def said(content, **fields):
    return flags(messages=[{"role": "user", "content": content}], **fields)


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({"chat_template_kwargs": {"enable_thinking": True}}, True),
        ({"chat_template_kwargs": {"thinking": False}}, False),
        ({"enable_thinking": True}, True),
        ({"reasoning_effort": "high"}, True),
        ({"reasoning_effort": "none"}, False),
        ({"reasoning": {"effort": "medium"}}, True),
        ({"reasoning": {"enabled": False}}, False),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, True),
        ({"thinking": {"type": "disabled"}}, False),
        ({"reasoning_budget": 0}, False),
        ({"thinking_budget": 512}, True),
    ],
)
def test_thinking_fields(fields, thinking):
    got = flags(default=not thinking, **fields)
    assert got.thinking is thinking
    assert got.thinking_said


def test_the_workers_default_holds_when_nothing_is_said():
    assert flags(default=True).thinking
    assert not flags(default=True).thinking_said
    assert not flags().thinking


def test_text_switches_and_their_order():
    assert said("why? /think").thinking
    assert not said("why? /no_think", default=True).thinking
    assert said("/no_think no, wait: /think").thinking
    assert not said("why? /think", enable_thinking=False).thinking
    assert not said("why? /no_think", enable_thinking=True).thinking


def test_the_word_think_alone_switches_nothing():
    assert not said("I think so").thinking_said


def test_a_prefill_settles_thinking():
    def turns(prefill):
        return [*ASK["messages"], {"role": "assistant", "content": prefill}]

    assert flags(messages=turns("<think>\n")).thinking
    assert not flags(messages=turns("<think>\n</think>\n"), enable_thinking=True).thinking


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"response_format": {"type": "json_object"}}, "json"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}}, "json"),
        ({"response_format": {"type": "text"}}, ""),
        ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "json"),
        ({"grammar": 'root ::= "a"'}, "json"),
        ({"grammar": ""}, ""),
        ({"tools": TOOLS, "tool_choice": "required"}, "tool_call"),
        ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_call"),
        ({"tools": TOOLS, "tool_choice": "auto"}, ""),
        ({"prediction": {"type": "content", "content": "x"}}, "rewrite"),
        ({"input_suffix": "}"}, "code"),
    ],
)
def test_forced_kinds(fields, kind):
    assert flags(**fields).forced == kind


@pytest.mark.parametrize(
    ("prefill", "kind"),
    [
        ("```json\n", "json"),
        ("```python\n", "code"),
        ("{", "json"),
        ("| a |", "table"),
        ("1.", "list"),
        ("- one", "list"),
        ("Well, ", ""),
        ("</think>\n[", "json"),
    ],
)
def test_prefills_force_a_kind(prefill, kind):
    messages = [*ASK["messages"], {"role": "assistant", "content": prefill}]
    assert flags(messages=messages).forced == kind


def test_limits_and_schemas():
    assert flags(max_completion_tokens=50, max_tokens=9).max_tokens == 50
    assert flags(max_tokens=True).max_tokens is None
    one = flags(grammar="a").schema_hash
    assert one == flags(grammar="a").schema_hash != flags(grammar="b").schema_hash
    assert flags().schema_hash == ""
