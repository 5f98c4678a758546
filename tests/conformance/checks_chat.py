"""Chat completions through OpenAI's SDK for Python, answered whole."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import openai

from tests.conformance.suite import check
from tests.conformance.target import COUNTING, PATIENCE

if TYPE_CHECKING:
    from tests.conformance.target import Target

SDK = "openai-python"


def _ask(t: Target, text: str = COUNTING, **fields: Any) -> Any:
    return t.openai.chat.completions.create(**t.sdk_body(text, **fields))


def _say(t: Target, text: str = COUNTING, **fields: Any) -> str:
    return _ask(t, text, **fields).choices[0].message.content


@check(SDK)
def chat_answers(t: Target) -> Any:
    """A chat request is answered by the assistant, with a reason for its end."""
    answer = _ask(t)
    choice = answer.choices[0]
    assert answer.object == "chat.completion"
    assert choice.message.role == "assistant"
    assert choice.message.content
    return choice.message.content, choice.finish_reason


@check(SDK)
def chat_usage_adds_up(t: Target) -> Any:
    """Usage counts the prompt, the answer and their sum."""
    usage = _ask(t).usage
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens == 8
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    return usage.prompt_tokens


@check(SDK)
def chat_names_the_model_and_an_id(t: Target) -> None:
    """An answer has an id, a time of creation and a model."""
    answer = _ask(t, max_tokens=1)
    assert answer.id.startswith("chatcmpl-")
    assert answer.created > 1_600_000_000
    assert answer.model


@check(SDK)
def chat_max_tokens_ends_with_length(t: Target) -> Any:
    """`max_tokens` is kept and told as finish_reason "length"."""
    answer = _ask(t, max_tokens=3)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3
    return answer.choices[0].message.content


@check(SDK)
def chat_max_completion_tokens(t: Target) -> Any:
    """`max_completion_tokens`, the newer name, does the same."""
    body = t.sdk_body(max_completion_tokens=3)
    del body["max_tokens"]
    answer = t.openai.chat.completions.create(**body)
    assert answer.usage.completion_tokens == 3
    return answer.choices[0].message.content


@check(SDK)
def chat_ends_by_itself_with_stop(t: Target) -> Any:
    """An answer that is complete ends with finish_reason "stop"."""
    answer = _ask(t, max_tokens=20, extra_body={"grammar": 'root ::= "done"'})
    assert answer.choices[0].finish_reason == "stop"
    return answer.choices[0].message.content


@check(SDK)
def chat_greedy_repeats(t: Target) -> Any:
    """At temperature 0 the same question has the same answer."""
    first, second = _say(t), _say(t)
    assert first == second
    return first


@check(SDK)
def chat_seed_repeats(t: Target) -> Any:
    """With a seed a sampled answer repeats."""
    first, second = (_say(t, temperature=1.0, seed=7) for _ in range(2))
    assert first == second
    return first


@check(SDK)
def chat_seed_differs(t: Target) -> Any:
    """Other seeds give other answers."""
    found = {_say(t, "Tell a story.", temperature=1.5, seed=seed) for seed in range(4)}
    assert len(found) > 1
    return sorted(found)


@check(SDK)
def chat_stop_string(t: Target) -> Any:
    """`stop` ends the answer before the string."""
    answer = _ask(t, max_tokens=20, stop="3")
    choice = answer.choices[0]
    assert choice.finish_reason == "stop"
    assert "3" not in choice.message.content
    return choice.message.content


@check(SDK)
def chat_stop_list(t: Target) -> Any:
    """`stop` takes several strings; the first that comes ends the answer."""
    choice = _ask(t, max_tokens=20, stop=["zebra", "2"]).choices[0]
    assert choice.finish_reason == "stop"
    assert "2" not in choice.message.content
    return choice.message.content


@check(SDK)
def chat_two_choices(t: Target) -> Any:
    """`n: 2` gives two choices with their indexes."""
    answer = _ask(t, n=2, temperature=1.0, seed=3)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert all(choice.message.content for choice in answer.choices)
    return sorted(choice.message.content for choice in answer.choices)


@check(SDK)
def chat_logprobs(t: Target) -> Any:
    """`logprobs` tells the probability of each token, and the tokens spell the answer."""
    choice = _ask(t, logprobs=True).choices[0]
    rows = choice.logprobs.content
    assert len(rows) == 8
    assert all(row.logprob <= 0 for row in rows)
    spelled = b"".join(bytes(row.bytes) for row in rows).decode()
    assert spelled == choice.message.content
    return [row.token for row in rows]


@check(SDK)
def chat_top_logprobs(t: Target) -> Any:
    """`top_logprobs: 3` tells the three likeliest tokens, the chosen one first when greedy."""
    rows = _ask(t, logprobs=True, top_logprobs=3).choices[0].logprobs.content
    for row in rows:
        assert len(row.top_logprobs) == 3
        assert row.top_logprobs[0].token == row.token
        assert sum(math.exp(top.logprob) for top in row.top_logprobs) <= 1.001
    return [[top.token for top in row.top_logprobs] for row in rows]


@check(SDK)
def chat_logit_bias(t: Target) -> Any:
    """A token with a bias of -100 is not chosen."""
    first = _say(t, max_tokens=1)
    token = t.post("/tokenize", {"model": t.exact, "content": first}).json()["tokens"][0]
    other = _say(t, max_tokens=1, logit_bias={str(token): -100})
    assert other != first
    return other


@check(SDK)
def chat_sampling_fields(t: Target) -> Any:
    """OpenAI's sampling fields are taken together."""
    return _say(t, temperature=0.7, top_p=0.9, presence_penalty=0.5, frequency_penalty=0.5, seed=11)


@check(SDK)
def chat_system_message(t: Target) -> Any:
    """A system message is part of the prompt."""
    plain = _ask(t, max_tokens=1)
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": COUNTING}]
    answer = _ask(t, max_tokens=8, messages=turns)
    assert answer.usage.prompt_tokens > plain.usage.prompt_tokens
    return answer.choices[0].message.content


@check(SDK)
def chat_content_parts(t: Target) -> Any:
    """Content in text parts is read like the same text as a string."""
    parts = [{"type": "text", "text": COUNTING}]
    answer = _ask(t, messages=[{"role": "user", "content": parts}])
    assert answer.choices[0].message.content == _say(t)
    return answer.choices[0].message.content


@check(SDK)
def chat_several_turns(t: Target) -> Any:
    """Earlier turns are part of the prompt."""
    turns = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello. How can I help?"},
        {"role": "user", "content": COUNTING},
    ]
    answer = _ask(t, messages=turns)
    assert answer.usage.prompt_tokens > _ask(t, max_tokens=1).usage.prompt_tokens
    return answer.choices[0].message.content


@check(SDK)
def chat_begun_answer_goes_on(t: Target) -> Any:
    """A last message of the assistant is continued."""
    turns = [{"role": "user", "content": COUNTING}, {"role": "assistant", "content": "1\n2\n"}]
    return _say(t, messages=turns)


@check(SDK)
def chat_any_language(t: Target) -> Any:
    """Text outside ASCII arrives whole at the model and comes back whole."""
    said = _say(t, max_tokens=40, extra_body={"grammar": 'root ::= "Привет, 世界 😀"'})
    assert said == "Привет, 世界 😀"
    return said


@check(SDK)
def chat_takes_unknown_fields(t: Target) -> Any:
    """Fields that only OpenAI knows do no harm."""
    fields = {"user": "me", "metadata": {"a": "b"}, "store": False, "service_tier": "auto"}
    return _say(t, **fields)


@check(SDK)
def chat_headers_are_readable(t: Target) -> None:
    """The SDK's raw response shows the answer and its headers."""
    raw = t.openai.chat.completions.with_raw_response.create(**t.sdk_body(max_tokens=1))
    assert raw.status_code == 200
    assert raw.headers["content-type"].startswith("application/json")
    assert raw.parse().choices


@check(SDK)
def chat_async_client(t: Target) -> Any:
    """The SDK's asynchronous client works, several requests at once."""

    async def ask() -> list[str]:
        async with openai.AsyncOpenAI(
            base_url=t.v1, api_key=t.api_key, max_retries=0, timeout=PATIENCE
        ) as client:
            asked = [client.chat.completions.create(**t.sdk_body()) for _ in range(3)]
            return [a.choices[0].message.content for a in await asyncio.gather(*asked)]

    said = asyncio.run(ask())
    assert len(set(said)) == 1
    return said[0]


@check(SDK)
def chat_key_is_a_bearer_token(t: Target) -> None:
    """The SDK's key reaches the server as a bearer token, and the answer shows no trace of it."""
    raw = t.openai.chat.completions.with_raw_response.create(**t.sdk_body(max_tokens=1))
    assert t.api_key not in raw.text
    assert t.api_key not in str(raw.headers)
