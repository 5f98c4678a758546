"""What the start of an answer says, in every dialect."""

from __future__ import annotations

import orjson
import pytest

from router.relay.sample import read_sample
from tests.support.gateway import ANSWER, DONE

TOOL = {"type": "tool_use", "name": "f", "input": {}}
BLOCKS = [{"type": "thinking", "thinking": "b"}, {"type": "text", "text": "a"}]
OUTPUT = [
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "b"}]},
    {"type": "message", "content": [{"type": "output_text", "text": "a"}]},
]


def events(*bodies) -> bytes:
    return b"".join(b"event: x\ndata: " + orjson.dumps(body) + b"\n\n" for body in bodies)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"choices": [{"message": {"content": "a", "reasoning_content": "b"}}]}, ("a", "b", False)),
        ({"choices": [{"message": {"content": None, "tool_calls": [{}]}}]}, ("", "", True)),
        ({"choices": [{"text": "t"}]}, ("t", "", False)),
        ({"content": "t"}, ("t", "", False)),
        ({"type": "message", "content": BLOCKS}, ("a", "b", False)),
        ({"type": "message", "content": [*BLOCKS, TOOL]}, ("a", "b", True)),
        ({"object": "response", "output": OUTPUT}, ("a", "b", False)),
        ({"object": "response", "output": [{"type": "function_call"}]}, ("", "", True)),
        ({"choices": 5}, ("", "", False)),
        ({"choices": [5, {"delta": 5}]}, ("", "", False)),
        ({"content": [5, {"type": "text", "text": 5}], "output": None}, ("", "", False)),
    ],
)
def test_bodies(body, said):
    assert read_sample(orjson.dumps(body)) == said


def test_streams():
    assert read_sample(b"".join((*ANSWER, DONE)))[0] == "one two three"
    messages = events(
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "b"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    )
    assert read_sample(messages) == ("a", "b", False)
    assert read_sample(events({"type": "content_block_start", "content_block": TOOL}))[2]
    responses = events(
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.reasoning_text.delta", "delta": "b"},
        {"type": "response.output_text.delta", "delta": "a"},
    )
    assert read_sample(responses) == ("a", "b", False)
    assert read_sample(events({"type": "response.function_call_arguments.delta", "delta": "{"}))[2]


def test_what_was_cut_off_says_nothing():
    assert read_sample(b'{"cut off') == ("", "", False)
