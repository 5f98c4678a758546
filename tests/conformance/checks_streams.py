"""Streamed chat completions: through OpenAI's SDK, and as the events that they are."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import openai

from tests.conformance.suite import check
from tests.conformance.target import COUNTING, PATIENCE, text_of

if TYPE_CHECKING:
    from tests.conformance.target import Target

SDK, HTTP = "openai-python", "http"


def _chunks(t: Target, text: str = COUNTING, **fields: Any) -> list[Any]:
    return list(t.openai.chat.completions.create(**t.sdk_body(text, stream=True, **fields)))


def _text(chunks: list[Any]) -> str:
    return "".join(c.delta.content or "" for chunk in chunks for c in chunk.choices)


@check(SDK)
def stream_is_the_plain_answer(t: Target) -> Any:
    """The pieces of a stream are the text of the plain answer."""
    said = _text(_chunks(t))
    assert said == t.chat()["choices"][0]["message"]["content"]
    return said


@check(SDK)
def stream_begins_with_the_role(t: Target) -> Any:
    """The first delta names the assistant's role, the others do not."""
    roles = [choice.delta.role for chunk in _chunks(t) for choice in chunk.choices]
    assert roles[0] == "assistant"
    assert not any(roles[1:])
    return len(roles)


@check(HTTP)
def stream_begins_with_the_role_though_a_character_is_split(t: Target) -> Any:
    """Also where the first token is only a part of a character."""
    events = t.chat_events(grammar='root ::= "😀"')
    assert text_of(events) == "😀"
    assert events[0]["choices"][0]["delta"].get("role") == "assistant"


@check(HTTP)
def stream_joins_split_characters(t: Target) -> Any:
    """Characters of several bytes come whole, whatever the tokens are."""
    said = text_of(t.chat_events(max_tokens=40, grammar='root ::= "añб世😀"'))
    assert said == "añб世😀"
    return said


@check(SDK)
def stream_tells_why_it_ended(t: Target) -> Any:
    """Only the last choice has a finish_reason."""
    reasons = [choice.finish_reason for chunk in _chunks(t) for choice in chunk.choices]
    assert reasons[-1] == "length"
    assert not any(reasons[:-1])
    return len(reasons)


@check(SDK)
def stream_has_one_id(t: Target) -> None:
    """Every chunk has the same id and model."""
    chunks = _chunks(t)
    assert len({(c.id, c.model, c.object) for c in chunks}) == 1
    assert chunks[0].object == "chat.completion.chunk"


@check(SDK)
def stream_hides_usage_that_nobody_asked_for(t: Target) -> Any:
    """Without `stream_options` no chunk tells usage, and every chunk has a choice."""
    chunks = _chunks(t)
    assert all(chunk.usage is None for chunk in chunks)
    assert all(chunk.choices for chunk in chunks)
    return len(chunks)


@check(SDK)
def stream_tells_usage_when_asked(t: Target) -> Any:
    """With `include_usage` the last chunk has no choice and the usage."""
    chunks = _chunks(t, stream_options={"include_usage": True})
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 8
    assert all(chunk.usage is None for chunk in chunks[:-1])
    return chunks[-1].usage.prompt_tokens, chunks[-1].usage.total_tokens


@check(HTTP)
def stream_usage_false_is_no_usage(t: Target) -> Any:
    """`include_usage: false` is the same as not asking."""
    events = t.chat_events(stream_options={"include_usage": False})
    assert not any("usage" in event for event in events)
    return len(events)


@check(SDK)
def stream_of_two_choices(t: Target) -> Any:
    """`n: 2` streams both choices, each to its end."""
    texts, ends = defaultdict(str), {}
    for chunk in _chunks(t, n=2, temperature=1.0, seed=3):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            ends[choice.index] = choice.finish_reason or ends.get(choice.index)
    assert sorted(texts) == [0, 1]
    assert all(ends.values())
    return sorted(texts.values())


@check(SDK)
def stream_of_two_choices_counts_both(t: Target) -> Any:
    """The usage of `n: 2` comes once and counts the tokens of both choices."""
    chunks = _chunks(t, n=2, stream_options={"include_usage": True})
    told = [chunk.usage for chunk in chunks if chunk.usage is not None]
    assert len(told) == 1
    assert told[0].completion_tokens == 16
    assert chunks[-1].usage is told[0]


@check(SDK)
def stream_seed_repeats(t: Target) -> Any:
    """A seed gives the same stream, and the same text as a plain answer."""
    fields = {"temperature": 1.0, "seed": 7}
    said = _text(_chunks(t, **fields))
    assert said == _text(_chunks(t, **fields))
    assert said == t.chat(**fields)["choices"][0]["message"]["content"]
    return said


@check(SDK)
def stream_logprobs(t: Target) -> Any:
    """`logprobs` come with their chunks and spell the text."""
    chunks = _chunks(t, logprobs=True, top_logprobs=2)
    choices = [choice for chunk in chunks for choice in chunk.choices if choice.logprobs]
    rows = [row for choice in choices for row in choice.logprobs.content]
    assert rows
    assert b"".join(bytes(row.bytes) for row in rows).decode() == _text(chunks)
    return [row.token for row in rows]


@check(SDK)
def stream_stop_string(t: Target) -> Any:
    """No piece of the stop string is sent."""
    chunks = _chunks(t, max_tokens=20, stop=["3"])
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert "3" not in _text(chunks)
    return _text(chunks)


@check(SDK)
def stream_helper_gathers_the_answer(t: Target) -> Any:
    """The SDK's `stream` helper puts the answer together."""
    body = t.sdk_body(max_tokens=20, stop=["4"])
    with t.openai.chat.completions.stream(**body) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content
    return final.choices[0].message.content


@check(SDK)
def stream_async_client(t: Target) -> Any:
    """The SDK's asynchronous client reads streams, several at once."""

    async def read(client: openai.AsyncOpenAI) -> str:
        stream = await client.chat.completions.create(**t.sdk_body(stream=True))
        return _text([chunk async for chunk in stream])

    async def ask() -> list[str]:
        async with openai.AsyncOpenAI(
            base_url=t.v1, api_key=t.api_key, max_retries=0, timeout=PATIENCE
        ) as client:
            return await asyncio.gather(*[read(client) for _ in range(3)])

    said = asyncio.run(ask())
    assert len(set(said)) == 1
    return said[0]


@check(SDK)
def stream_left_early_does_no_harm(t: Target) -> Any:
    """After a stream was left in the middle the same client goes on asking."""
    stream = t.openai.chat.completions.create(**t.sdk_body(stream=True, max_tokens=200))
    next(iter(stream))
    stream.close()
    return _text(_chunks(t))


@check(HTTP)
def stream_comes_in_pieces(t: Target) -> None:
    """Events arrive one by one while the answer is made, not all at its end."""
    body = t.body(stream=True, max_tokens=40, ignore_eos=True)
    arrived = []
    with t.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        arrived += [len(part) for part in answer.iter_raw()]
    assert len(arrived) >= 5, f"{sum(arrived)} bytes in {len(arrived)} reads"


@check(HTTP)
def stream_is_for_events_and_not_cached(t: Target) -> None:
    """The head says what follows and that no proxy should keep or gather it."""
    body = t.body(stream=True, max_tokens=1)
    with t.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert answer.headers["content-type"].partition(";")[0] == "text/event-stream"
        assert answer.headers["x-accel-buffering"] == "no"
        answer.read()


@check(HTTP)
def stream_ends_with_done(t: Target) -> Any:
    """The last event is [DONE], once."""
    answer = t.post("/v1/chat/completions", t.body(stream=True))
    assert answer.text.endswith("data: [DONE]\n\n")
    assert answer.text.count("[DONE]") == 1
    return answer.text.count("\n\n")


@check(HTTP)
def stream_refused_before_it_begins_is_a_plain_error(t: Target) -> Any:
    """A request that cannot be served has a status, not an event, though it asked for a stream."""
    answer = t.post("/v1/chat/completions", t.body("word " * 9000, stream=True))
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("application/json")
    return answer.json()["error"]["type"]
