"""Answers held to a form: JSON, schemas, grammars, tools; and thinking beside the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import openai
import pydantic

from tests.conformance.suite import check, raised
from tests.conformance.target import refusal, text_of

if TYPE_CHECKING:
    from tests.conformance.target import Target

SDK, HTTP = "openai-python", "http"
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA},
}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
            "required": ["city"],
        },
    },
}
# The bundled model never begins a call by itself; other models do not know the word.
CALL = {"chat_template_kwargs": {"call_tool": True}}
ONE_CALL = {
    "text": "Weather in Paris?",
    "tools": [WEATHER],
    "tool_choice": "required",
    "max_tokens": 90,
    "stop": ["</"],  # a small model would go on to call it again and again
    "extra_body": CALL,
}
THINK = {"chat_template_kwargs": {"enable_thinking": True}}


class Verdict(pydantic.BaseModel):
    """What the SDK shall read out of an answer."""

    colour: Literal["red", "blue"]


def _sdk(t: Target, **fields: Any) -> Any:
    return t.openai.chat.completions.create(**t.sdk_body(**fields))


@check(SDK)
def format_json_schema(t: Target) -> Any:
    """`json_schema` holds the answer to the schema."""
    choice = _sdk(t, max_tokens=60, response_format=FORMAT).choices[0]
    assert choice.finish_reason == "stop"
    assert set(json.loads(choice.message.content)) == {"ok"}
    return choice.message.content


@check(SDK)
def format_json_schema_streamed(t: Target) -> Any:
    """The same in a stream."""
    chunks = list(_sdk(t, max_tokens=60, response_format=FORMAT, stream=True))
    text = "".join(c.delta.content or "" for chunk in chunks for c in chunk.choices)
    assert set(json.loads(text)) == {"ok"}
    return text


@check(SDK)
def format_parsed_by_the_sdk(t: Target) -> Any:
    """The SDK's `parse` makes a schema of a class and an object of the answer."""
    body = t.sdk_body(max_tokens=60)
    answer = t.openai.chat.completions.parse(**body, response_format=Verdict)
    assert answer.choices[0].message.parsed.colour in ("red", "blue")
    return answer.choices[0].message.parsed.colour


@check(SDK)
def format_json_object(t: Target) -> Any:
    """`json_object` makes the answer JSON."""
    answer = _sdk(
        t, text="Give one JSON object.", max_tokens=150, response_format={"type": "json_object"}
    )
    choice = answer.choices[0]
    assert choice.message.content.lstrip().startswith("{")
    if choice.finish_reason == "stop":
        json.loads(choice.message.content)
    return choice.message.content, choice.finish_reason


@check(HTTP)
def format_json_cut_short_is_no_failure(t: Target) -> Any:
    """JSON that `max_tokens` cuts off is an answer with finish_reason "length"."""
    choice = t.chat(max_tokens=6, response_format={"type": "json_object"})["choices"][0]
    assert choice["finish_reason"] == "length"
    return choice["message"]["content"].strip()


@check(SDK)
def format_text_is_no_form(t: Target) -> Any:
    """`response_format: text` changes nothing."""
    said = _sdk(t, response_format={"type": "text"}).choices[0].message.content
    assert said == t.chat()["choices"][0]["message"]["content"]
    return said


@check(HTTP)
def format_unknown_is_refused(t: Target) -> Any:
    """A format that nobody knows is a 400."""
    answer = t.post("/v1/chat/completions", t.body(response_format={"type": "sonnet"}))
    assert answer.status_code == 400
    return answer.json()["error"]["type"]


@check(HTTP)
def format_grammar(t: Target) -> Any:
    """llama.cpp's `grammar` holds the answer to a grammar."""
    choice = t.chat(max_tokens=20, grammar='root ::= "yes" | "no"')["choices"][0]
    assert choice["message"]["content"] in ("yes", "no")
    assert choice["finish_reason"] == "stop"
    return choice["message"]["content"]


@check(HTTP)
def format_grammar_streamed(t: Target) -> Any:
    """The same in a stream."""
    said = text_of(t.chat_events(max_tokens=20, grammar='root ::= [a-c]{3} "!"'))
    assert len(said) == 4
    return said


@check(HTTP)
def format_bad_grammar_is_refused(t: Target) -> Any:
    """A grammar that does not parse is a 400."""
    answer = t.post("/v1/chat/completions", t.body(grammar="root ::= ((("))
    assert answer.status_code == 400
    return answer.json()["error"]["type"]


@check(HTTP)
def format_llama_json_schema(t: Target) -> Any:
    """llama.cpp's own `json_schema` field does the same as `response_format`."""
    choice = t.chat(max_tokens=60, json_schema=SCHEMA)["choices"][0]
    assert set(json.loads(choice["message"]["content"])) == {"ok"}
    return choice["message"]["content"]


@check(HTTP, gateway_only=True)
def format_huge_grammar_is_refused(t: Target) -> Any:
    """A grammar of a megabyte does not reach a worker."""
    grammar = "root ::= " + " | ".join(f'"{n}"' for n in range(150_000))
    error = refusal(t.post("/v1/chat/completions", t.body(grammar=grammar)), 400)
    assert error["param"] == "grammar"


@check(SDK)
def tool_call(t: Target) -> Any:
    """A required tool is called by name, with arguments that are JSON of its schema."""
    answer = _sdk(t, **ONE_CALL)
    assert answer.choices[0].finish_reason == "tool_calls"
    call = answer.choices[0].message.tool_calls[0]
    assert call.type == "function"
    assert call.id
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["city"] in ("Paris", "Rome")
    return call.function.arguments


@check(SDK)
def tool_call_streamed(t: Target) -> Any:
    """In a stream the first delta names the tool, the rest spell the arguments."""
    chunks = list(_sdk(t, **ONE_CALL, stream=True))
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    deltas = [c.delta for chunk in chunks for c in chunk.choices]
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    assert calls[0].function.name == "weather"
    assert calls[0].id
    assert {call.index for call in calls} == {0}
    assert not any(call.id for call in calls[1:])
    arguments = "".join(call.function.arguments or "" for call in calls)
    assert json.loads(arguments)["city"] in ("Paris", "Rome")
    return arguments


@check(SDK)
def tool_call_streamed_is_the_plain_one(t: Target) -> Any:
    """The SDK's helper puts the same call together as comes whole."""
    body = t.sdk_body(**ONE_CALL)
    with t.openai.chat.completions.stream(**body) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls[0].function
    whole = t.openai.chat.completions.create(**body).choices[0].message.tool_calls[0].function
    assert (streamed.name, json.loads(streamed.arguments)) == (
        whole.name,
        json.loads(whole.arguments),
    )
    return whole.arguments


@check(SDK)
def tool_choice_none(t: Target) -> Any:
    """With `tool_choice: none` nothing is called."""
    message = _sdk(t, tools=[WEATHER], tool_choice="none").choices[0].message
    assert not message.tool_calls
    return message.content


@check(SDK)
def tool_choice_auto(t: Target) -> Any:
    """With `auto` the model may answer in words."""
    choice = _sdk(t, tools=[WEATHER], tool_choice="auto").choices[0]
    assert choice.message.content or choice.message.tool_calls
    return choice.message.content


@check(SDK)
def tool_result_is_read(t: Target) -> Any:
    """A tool's result goes back in a message of role tool."""
    call = {"name": "weather", "arguments": '{"city": "Rome"}'}
    turns = [
        {"role": "user", "content": "How is the weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    return _sdk(t, messages=turns, tools=[WEATHER]).choices[0].message.content


@check(SDK)
def tools_must_be_a_list(t: Target) -> None:
    """`tools` of another type is the SDK's BadRequestError."""
    error = raised(openai.BadRequestError, lambda: _sdk(t, tools="weather"))
    assert error.status_code == 400


@check(SDK)
def thinking_is_beside_the_answer(t: Target) -> Any:
    """With `enable_thinking` the thoughts come as `reasoning_content`."""
    message = _sdk(t, max_tokens=40, extra_body=THINK).choices[0].message
    assert message.reasoning_content
    assert "<think>" not in (message.content or "")
    return message.reasoning_content, message.content


@check(HTTP)
def thinking_streamed(t: Target) -> Any:
    """In a stream the deltas of thoughts come before those of the answer."""
    events = t.chat_events(max_tokens=40, **THINK)
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    thought = [i for i, delta in enumerate(deltas) if delta.get("reasoning_content")]
    said = [i for i, delta in enumerate(deltas) if delta.get("content")]
    assert thought
    assert not said or thought[-1] < said[0]
    return text_of(events, "reasoning_content"), text_of(events)


@check(HTTP)
def thinking_off(t: Target) -> Any:
    """Without thinking there is no `reasoning_content`."""
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    message = t.chat(**off)["choices"][0]["message"]
    assert not message.get("reasoning_content")
    return message["content"]


@check(HTTP)
def thinking_inline(t: Target) -> Any:
    """`reasoning_format: none` leaves the thoughts in the text."""
    message = t.chat(max_tokens=40, reasoning_format="none", **THINK)["choices"][0]["message"]
    assert "<think>" in message["content"]
    assert not message.get("reasoning_content")
    return message["content"]


@check(HTTP)
def thinking_must_be_a_boolean(t: Target) -> Any:
    """`enable_thinking` as a string is a 400 that says so."""
    kwargs = {"enable_thinking": "yes"}
    answer = t.post("/v1/chat/completions", t.body(chat_template_kwargs=kwargs))
    assert answer.status_code == 400
    assert "boolean" in answer.json()["error"]["message"]
    return answer.json()["error"]["message"]


@check(SDK)
def thinking_effort_is_taken(t: Target) -> Any:
    """OpenAI's `reasoning_effort` reaches the worker."""
    return [
        _sdk(t, reasoning_effort=effort).choices[0].message.content for effort in ("low", "high")
    ]


@check(HTTP)
def thinking_budget(t: Target) -> Any:
    """llama.cpp's `reasoning_budget_tokens: 0` ends the thoughts at once."""
    message = t.chat(max_tokens=30, reasoning_budget_tokens=0, **THINK)["choices"][0]["message"]
    return message.get("reasoning_content"), message["content"]


@check(SDK)
def image_on_a_text_model_is_refused(t: Target) -> None:
    """An image where no worker sees is the SDK's BadRequestError, not a server's failure."""
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]
    error = raised(
        openai.BadRequestError, lambda: _sdk(t, messages=[{"role": "user", "content": parts}])
    )
    assert "image" in error.message
