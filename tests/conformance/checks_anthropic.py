"""Anthropic's surface through its own SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic

from tests.conformance.suite import check, raised
from tests.conformance.target import COUNTING

if TYPE_CHECKING:
    from tests.conformance.target import Target

SDK = "anthropic"


def _body(t: Target, text: str = COUNTING, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    fixed = {"max_tokens": 8, "temperature": 0, "extra_body": {"cache_prompt": False}}
    return {"model": t.exact, "messages": messages, **fixed, **fields}


def _ask(t: Target, text: str = COUNTING, **fields: Any) -> Any:
    body = _body(t, text, **fields)
    extra = {**body.pop("extra_body"), "temperature": body.pop("temperature")}
    return t.anthropic.messages.create(**body, extra_body=extra)


def _read(answer: Any) -> int:
    """Tokens of the prompt, digested now or known before."""
    usage = answer.usage
    return usage.input_tokens + (usage.cache_read_input_tokens or 0)


@check(SDK)
def message_answers(t: Target) -> Any:
    """A message is answered in a text block."""
    answer = _ask(t)
    assert answer.type == "message"
    assert answer.role == "assistant"
    assert answer.content[0].type == "text"
    assert answer.content[0].text
    return answer.content[0].text


@check(SDK)
def message_counts(t: Target) -> Any:
    """Usage counts both ways, and "max_tokens" tells why it ended."""
    answer = _ask(t)
    assert answer.usage.output_tokens == 8
    assert answer.stop_reason == "max_tokens"
    return _read(answer)


@check(SDK)
def message_streamed(t: Target) -> Any:
    """The SDK's stream helper puts the message together."""
    body = _body(t)
    extra = {**body.pop("extra_body"), "temperature": body.pop("temperature")}
    with t.anthropic.messages.stream(**body, extra_body=extra) as stream:
        said = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert final.content[0].text == said
    assert said == _ask(t).content[0].text
    return said


@check(SDK)
def message_events_in_order(t: Target) -> Any:
    """The stream's events open and close the message and its block."""
    kinds = [event.type for event in _ask(t, stream=True)]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.index("content_block_start") < kinds.index("content_block_delta")
    return sorted(set(kinds))


@check(SDK)
def message_tokens_counted(t: Target) -> Any:
    """Counting tokens gives the prompt's, without an answer."""
    turns = [{"role": "user", "content": COUNTING}]
    counted = t.anthropic.messages.count_tokens(model=t.exact, messages=turns).input_tokens
    assert counted == _read(_ask(t))
    return counted


@check(SDK)
def message_system(t: Target) -> Any:
    """`system` is part of the prompt."""
    answer = _ask(t, system="Be brief.")
    assert _read(answer) > _read(_ask(t))
    return answer.content[0].text


@check(SDK)
def message_stop_sequences(t: Target) -> Any:
    """`stop_sequences` end the answer."""
    answer = _ask(t, max_tokens=20, stop_sequences=["3"])
    assert "3" not in answer.content[0].text
    return answer.content[0].text


@check(SDK)
def message_blocks(t: Target) -> Any:
    """Content may be blocks of text."""
    turns = [{"role": "user", "content": [{"type": "text", "text": COUNTING}]}]
    answer = _ask(t, messages=turns)
    assert answer.content[0].text == _ask(t).content[0].text
    return answer.content[0].text


@check(SDK)
def message_turns(t: Target) -> Any:
    """Earlier turns are part of the prompt."""
    turns = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": COUNTING},
    ]
    return _ask(t, messages=turns).content[0].text


@check(SDK)
def message_tool_use(t: Target) -> Any:
    """A tool that must be used comes as a tool_use block."""
    tool = {
        "name": "weather",
        "description": "The weather.",
        "input_schema": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
            "required": ["city"],
        },
    }
    extra = {"cache_prompt": False, "chat_template_kwargs": {"call_tool": True}}
    choice = {"type": "any"}
    answer = _ask(
        t,
        "Weather in Paris?",
        max_tokens=90,
        tools=[tool],
        tool_choice=choice,
        stop_sequences=["</"],  # a small model would go on to call it again
        extra_body=extra,
    )
    assert answer.stop_reason == "tool_use"
    used = next(block for block in answer.content if block.type == "tool_use")
    assert used.name == "weather"
    assert used.input["city"] in ("Paris", "Rome")
    return used.input


@check(SDK)
def message_async_client(t: Target) -> Any:
    """The SDK's asynchronous client works."""
    import asyncio

    async def ask() -> str:
        async with anthropic.AsyncAnthropic(
            base_url=t.base_url, api_key=t.api_key, max_retries=0
        ) as client:
            body = _body(t)
            extra = {**body.pop("extra_body"), "temperature": body.pop("temperature")}
            return (await client.messages.create(**body, extra_body=extra)).content[0].text

    said = asyncio.run(ask())
    assert said == _ask(t).content[0].text
    return said


@check(SDK, gateway_only=True)
def message_unknown_model(t: Target) -> None:
    """A model that does not exist is the SDK's NotFoundError."""
    error = raised(anthropic.NotFoundError, lambda: _ask(t, model="nobody"))
    assert "nobody" in str(error)


@check(SDK)
def message_needs_messages(t: Target) -> None:
    """A body without messages is the SDK's BadRequestError."""
    body = {"model": t.exact, "max_tokens": 4}
    raised(
        anthropic.BadRequestError,
        lambda: t.anthropic.post("/v1/messages", body=body, cast_to=object),
    )


@check(SDK, gateway_only=True)
def message_says_who_answered(t: Target) -> None:
    """The gateway's headers come with Anthropic's answers too."""
    body = _body(t)
    extra = {**body.pop("extra_body"), "temperature": body.pop("temperature")}
    raw = t.anthropic.messages.with_raw_response.create(**body, extra_body=extra)
    assert raw.headers["x-specroute-worker"] == t.exact.rpartition("@")[2]
    assert raw.headers["x-specroute-mode"] == "ar"
