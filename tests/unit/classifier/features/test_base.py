import pytest

from classifier.features.base import EDGE_MIN, USER_HEAD, USER_TAIL, edges, read


def chat(*turns, **fields):
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(turns)]
    return {"messages": messages, **fields}


def test_reads_the_last_user_turn_and_what_came_before():
    text = read(chat("first", "answer", "second"))
    assert (text.first, text.previous_user, text.previous_answer) == ("second", "first", "answer")
    assert text.prompt_chars == len("firstanswersecond")


def test_system_prompts_are_joined_and_cut_at_both_ends():
    system = {"role": "system", "content": "A" * 400 + "Z" * 400}
    text = read({"messages": [system, {"role": "user", "content": "hi"}]})
    assert text.system.startswith("AAA")
    assert text.system.endswith("ZZZ")
    assert len(text.system) < 500


def test_a_trailing_assistant_message_is_a_prefill_not_an_answer():
    text = read(chat("question", "earlier answer", "again", "```json"))
    assert text.prefill == "```json"
    assert text.previous_answer == "earlier answer"


def test_parts_give_text_and_images():
    parts = [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {}}]
    text = read({"messages": [{"role": "user", "content": parts}]})
    assert text.first == "what is this"
    assert text.has_images


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ({"prompt": "def f("}, "def f("),
        ({"prompt": ["one", "two"]}, "one\ntwo"),
        ({"input": "hello"}, "hello"),
        ({"input": [{"role": "user", "content": "hello"}]}, "hello"),
        ({"input_prefix": "x = "}, "x = "),
        ({}, ""),
        ({"messages": "nonsense"}, ""),
        ({"messages": [None, 3, {"role": 7, "content": {"a": 1}}]}, ""),
    ],
)
def test_other_dialects_and_odd_bodies(body, first):
    assert read(body).first == first


def test_tools_are_ignored_when_forbidden():
    tools = [{"type": "function", "function": {"name": "f", "description": "d"}}, "odd"]
    assert read({"messages": [], "tools": tools}).tool_names == ("f",)
    assert read({"messages": [], "tools": tools, "tool_choice": "none"}).tool_names == ()


def test_a_long_turn_is_seen_at_its_edges():
    document = "Summarise the following page.\n" + "lorem ipsum\n" * 4000 + "What is missing in it?"
    window, first, last = edges(document)
    assert first == "Summarise the following page."
    assert last.strip() == "What is missing in it?"
    assert len(window) <= USER_HEAD + USER_TAIL + 1


def test_a_greeting_is_not_taken_for_the_instruction():
    turn = "Hello!\nPlease write a poem about the sea and the moon.\n" + "x " * 100 + "\nThanks!"
    _, first, last = edges(turn)
    assert "poem" in first
    assert len(last) >= EDGE_MIN
