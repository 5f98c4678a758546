"""The other paths of OpenAI's surface: text completions, responses, models, embeddings, rerank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai

from tests.conformance.suite import check, raised
from tests.conformance.target import COUNTING, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.target import Target

SDK, HTTP = "openai-python", "http"


def _complete(t: Target, prompt: Any = "Once upon a time", **fields: Any) -> Any:
    extra = {"cache_prompt": False, **fields.pop("extra_body", {})}
    fixed = {"max_tokens": 6, "temperature": 0, **fields}
    return t.openai.completions.create(model=t.exact, prompt=prompt, extra_body=extra, **fixed)


def _respond(t: Target, given: Any = COUNTING, **fields: Any) -> Any:
    fixed = {"max_output_tokens": 8, "temperature": 0, **fields}
    extra = {"cache_prompt": False}
    return t.openai.responses.create(model=t.exact, input=given, extra_body=extra, **fixed)


def _refused(ask: Callable[[], Any], status: int) -> openai.APIStatusError:
    error = raised(openai.APIStatusError, ask)
    assert error.status_code == status, error
    return error


@check(SDK)
def text_completion(t: Target) -> Any:
    """A text is continued."""
    answer = _complete(t)
    assert answer.object == "text_completion"
    assert answer.choices[0].text
    assert answer.usage.completion_tokens == 6
    return answer.choices[0].text, answer.choices[0].finish_reason


@check(SDK)
def text_completion_streamed(t: Target) -> Any:
    """The pieces of a stream are the plain text."""
    said = "".join(c.text for chunk in _complete(t, stream=True) for c in chunk.choices)
    assert said == _complete(t).choices[0].text
    return said


@check(SDK)
def text_completion_usage_streamed(t: Target) -> Any:
    """A stream tells usage when asked."""
    chunks = list(_complete(t, stream=True, stream_options={"include_usage": True}))
    told = [chunk.usage for chunk in chunks if chunk.usage]
    assert told[-1].completion_tokens == 6
    return told[-1].prompt_tokens


@check(SDK)
def text_completion_of_several_prompts(t: Target) -> Any:
    """Each prompt of a list has a choice."""
    answer = _complete(t, ["One", "Two"])
    assert [choice.index for choice in answer.choices] == [0, 1]
    return [choice.text for choice in answer.choices]


@check(SDK)
def text_completion_of_tokens(t: Target) -> Any:
    """A prompt may be tokens."""
    asked = {"model": t.exact, "content": "Once upon a time"}
    tokens = t.post("/tokenize", asked).json()["tokens"]
    return _complete(t, tokens).choices[0].text


@check(SDK)
def text_completion_logprobs(t: Target) -> Any:
    """`logprobs` come with a plain text."""
    logprobs = _complete(t, logprobs=2).choices[0].logprobs
    return bool(logprobs)


@check(SDK)
def text_completion_stop(t: Target) -> Any:
    """`stop` ends a text before the string."""
    whole = _complete(t, max_tokens=12).choices[0].text
    wanted = whole[len(whole) // 2]
    choice = _complete(t, max_tokens=12, stop=[wanted]).choices[0]
    assert choice.finish_reason == "stop"
    assert choice.text == whole.partition(wanted)[0]
    return choice.text


@check(SDK)
def text_completion_two_choices(t: Target) -> Any:
    """`n: 2` gives two texts."""
    answer = _complete(t, n=2, temperature=1.0, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1]
    return sorted(choice.text for choice in answer.choices)


@check(SDK)
def text_completion_needs_a_prompt(t: Target) -> None:
    """Without a prompt the SDK raises BadRequestError."""
    _refused(lambda: _complete(t, None), 400)


@check(SDK)
def responses_answer(t: Target) -> Any:
    """The Responses API answers, and the SDK finds the text."""
    answer = _respond(t)
    assert answer.object == "response"
    assert answer.output_text
    assert answer.usage.output_tokens > 0
    return answer.output_text


@check(SDK)
def responses_streamed(t: Target) -> Any:
    """Its events begin with the creation and end with the completion."""
    events = list(_respond(t, stream=True))
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] in ("response.completed", "response.incomplete")
    return "".join(e.delta for e in events if e.type == "response.output_text.delta")


@check(SDK)
def responses_instructions(t: Target) -> Any:
    """`instructions` are part of the prompt."""
    short = _respond(t).usage.input_tokens
    answer = _respond(t, instructions="Answer with numbers only.")
    assert answer.usage.input_tokens > short
    return answer.output_text


@check(SDK)
def responses_of_messages(t: Target) -> Any:
    """The input may be a list of messages."""
    answer = _respond(t, [{"role": "user", "content": COUNTING}])
    assert answer.output_text == _respond(t).output_text
    return answer.output_text


@check(SDK)
def responses_need_input(t: Target) -> None:
    """Without input the SDK raises BadRequestError."""
    answer = t.post("/v1/responses", {"model": t.exact})
    assert answer.status_code == 400


@check(SDK)
def models_are_listed(t: Target) -> None:
    """The model is in the list of models."""
    assert t.model in [model.id for model in t.openai.models.list()]


@check(SDK)
def model_is_found(t: Target) -> None:
    """A model is found by its name."""
    found = t.openai.models.retrieve(t.model)
    assert found.id == t.model
    assert found.object == "model"


@check(SDK)
def model_is_not_found(t: Target) -> None:
    """A name that is no model's is the SDK's NotFoundError."""
    error = _refused(lambda: t.openai.models.retrieve("nobody"), 404)
    assert isinstance(error, openai.NotFoundError)


@check(SDK)
def embeddings_where_there_are_none(t: Target) -> Any:
    """Embeddings that no worker makes are a 501 that says so."""
    error = _refused(lambda: t.openai.embeddings.create(model=t.exact, input="x"), 501)
    return error.body["type"]


@check(SDK, gateway_only=True)
def embeddings_are_not_tried_again(t: Target) -> None:
    """The SDK does not ask twice for what is not there, as it would after other 5xx."""
    seen: list[int] = []
    client = t.openai.with_options(max_retries=2)
    client._client.event_hooks["response"] = [lambda answer: seen.append(answer.status_code)]
    try:
        _refused(lambda: client.embeddings.create(model=t.exact, input="x"), 501)
    finally:
        client._client.event_hooks["response"] = []
    assert seen == [501]


@check(HTTP)
def rerank_where_there_is_none(t: Target) -> Any:
    """Ranking that no worker does is a 501 that says so."""
    answer = t.post("/v1/rerank", {"model": t.exact, "query": "x", "documents": ["a", "b"]})
    assert answer.status_code == 501
    return answer.json()["error"]["type"]


@check(HTTP, gateway_only=True)
def every_refusal_has_one_form(t: Target) -> None:
    """Errors are OpenAI's object with a code that is a string or null, on every path."""
    refusal(t.post("/v1/chat/completions", []), 400)
    refusal(t.post("/v1/completions", {"model": t.model}), 400)
    refusal(t.post("/v1/responses", {"model": t.model}), 400)
    refusal(t.post("/v1/messages", {"model": t.model}), 400)
    refusal(t.post("/v1/embeddings", {"model": t.model, "input": "x"}), 501)
    refusal(t.post("/v1/rerank", {"model": t.model, "query": "x", "documents": []}), 501)
    refusal(t.post("/tokenize", {"model": "nobody", "content": "x"}), 404)
    refusal(t.http.get("/nowhere"), 404)
