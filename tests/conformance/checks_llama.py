"""llama.cpp's own fields and paths, with the effect that they have on the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.conformance.suite import check
from tests.conformance.target import COUNTING, text_of

if TYPE_CHECKING:
    from tests.conformance.target import Target

HTTP = "http"


def _said(answer: dict[str, Any]) -> str:
    return answer["choices"][0]["message"]["content"]


def _post(t: Target, path: str, **fields: Any) -> dict[str, Any]:
    answer = t.post(path, {"model": t.exact, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


@check(HTTP)
def llama_min_p(t: Target) -> Any:
    """`min_p: 1` leaves only the likeliest token, whatever the temperature."""
    said = _said(t.chat(temperature=1.5, min_p=1.0, seed=1))
    assert said == _said(t.chat())
    return said


@check(HTTP)
def llama_top_k(t: Target) -> Any:
    """`top_k: 1` does the same."""
    said = _said(t.chat(temperature=1.5, top_k=1, seed=2))
    assert said == _said(t.chat())
    return said


@check(HTTP)
def llama_samplers(t: Target) -> Any:
    """`samplers` names the samplers and their order."""
    fields = {"temperature": 5.0, "top_k": 1, "seed": 3}
    unheeded = _said(t.chat(**fields, samplers=["temperature"]))
    assert unheeded != _said(t.chat(**fields, samplers=["top_k", "temperature"]))
    return unheeded


@check(HTTP)
def llama_repeat_penalty(t: Target) -> Any:
    """`repeat_penalty` changes what is said."""
    said = _said(t.chat(max_tokens=16, repeat_penalty=1.8))
    assert said != _said(t.chat(max_tokens=16))
    return said


@check(HTTP)
def llama_other_samplers(t: Target) -> Any:
    """typical_p, top_n_sigma, dry, xtc and mirostat are taken."""
    fields = {"typical_p": 0.9, "top_n_sigma": 1.0, "dry_multiplier": 0.8, "xtc_probability": 0.1}
    return [
        _said(t.chat(temperature=0.8, seed=4, **fields)),
        _said(t.chat(temperature=0.8, seed=4, mirostat=2)),
        _said(t.chat(temperature=0.8, seed=4, dynatemp_range=0.3)),
    ]


@check(HTTP)
def llama_cache_prompt(t: Target) -> None:
    """`cache_prompt` uses what is known of the prompt again, and `false` does not."""
    text = COUNTING + " Say the numbers in words, one a line, and nothing else at all."
    t.chat(text, max_tokens=1, cache_prompt=True)
    again = t.chat(text, max_tokens=1, cache_prompt=True)
    assert again["timings"]["cache_n"] > 0
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == again["timings"]["cache_n"]
    assert t.chat(text, max_tokens=1, cache_prompt=False)["timings"]["cache_n"] == 0


@check(HTTP)
def llama_timings(t: Target) -> Any:
    """A plain answer carries llama.cpp's timings."""
    timings = t.chat()["timings"]
    assert timings["predicted_n"] == 8
    assert timings["predicted_ms"] > 0
    return sorted(timings)


@check(HTTP)
def llama_timings_streamed(t: Target) -> Any:
    """A stream carries them on its last event."""
    events = t.chat_events()
    assert [i for i, event in enumerate(events) if "timings" in event] == [len(events) - 1]
    return sorted(events[-1]["timings"])


@check(HTTP)
def llama_timings_per_token(t: Target) -> Any:
    """`timings_per_token` puts them on every event with text."""
    events = t.chat_events(timings_per_token=True)
    timed = [event for event in events if "timings" in event]
    assert len(timed) >= len(events) - 1
    return len(timed)


@check(HTTP)
def llama_return_progress(t: Target) -> Any:
    """`return_progress` tells how far the prompt is read."""
    events = t.chat_events("word " * 150, return_progress=True, max_tokens=1)
    told = [event["prompt_progress"] for event in events if "prompt_progress" in event]
    assert told
    assert told[-1]["processed"] <= told[-1]["total"]
    return told[-1]["total"]


@check(HTTP)
def llama_n_predict(t: Target) -> Any:
    """`n_predict` is llama.cpp's name of max_tokens."""
    answer = t.post(
        "/v1/completions", {"model": t.exact, "prompt": "Once", "n_predict": 3, "temperature": 0}
    ).json()
    assert answer["usage"]["completion_tokens"] == 3
    return answer["choices"][0]["text"]


@check(HTTP)
def llama_ignore_eos(t: Target) -> Any:
    """`ignore_eos` goes on to the limit."""
    answer = t.chat("Hello", max_tokens=64, ignore_eos=True)
    assert answer["usage"]["completion_tokens"] == 64
    assert answer["choices"][0]["finish_reason"] == "length"
    return _said(answer)


@check(HTTP)
def llama_n_probs(t: Target) -> Any:
    """`n_probs` in a text completion gives probabilities."""
    body = {"model": t.exact, "prompt": "Once", "max_tokens": 3, "temperature": 0, "n_probs": 2}
    answer = t.post("/v1/completions", body).json()
    return bool(answer["choices"][0].get("logprobs"))


@check(HTTP)
def llama_logit_bias_pairs(t: Target) -> Any:
    """`logit_bias` in llama.cpp's form of pairs, `false` for never."""
    first = _said(t.chat(max_tokens=1))
    token = _post(t, "/tokenize", content=first)["tokens"][0]
    said = _said(t.chat(max_tokens=1, logit_bias=[[token, False]]))
    assert said != first
    return said


@check(HTTP)
def llama_sampling_by_lines(t: Target) -> Any:
    """`response_fields` and other unknown fields do no harm."""
    return _said(t.chat(response_fields=["content"], nonsense={"a": [1]}))


@check(HTTP)
def llama_max_tokens_without_end(t: Target) -> Any:
    """`max_tokens: -1` is no limit: the answer ends by itself."""
    answer = t.chat(max_tokens=-1, grammar='root ::= "a b c d e f g h i j k"')
    assert answer["choices"][0]["finish_reason"] == "stop"
    return _said(answer)


@check(HTTP)
def tokenize(t: Target) -> Any:
    """/tokenize counts tokens of a text."""
    tokens = _post(t, "/tokenize", content="hello world")["tokens"]
    assert tokens
    assert all(isinstance(token, int) for token in tokens)
    return tokens


@check(HTTP)
def tokenize_with_pieces(t: Target) -> Any:
    """`with_pieces` tells each token's text."""
    rows = _post(t, "/tokenize", content="hello world", with_pieces=True)["tokens"]
    assert "".join(row["piece"] for row in rows) == "hello world"
    return rows


@check(HTTP)
def detokenize(t: Target) -> Any:
    """/detokenize is the way back."""
    tokens = _post(t, "/tokenize", content="hello мир 😀")["tokens"]
    assert _post(t, "/detokenize", tokens=tokens)["content"].strip() == "hello мир 😀"
    return tokens


@check(HTTP)
def apply_template(t: Target) -> Any:
    """/apply-template shows the prompt that messages become."""
    prompt = _post(t, "/apply-template", messages=[{"role": "user", "content": "hello"}])["prompt"]
    assert "hello" in prompt
    return prompt


@check(HTTP)
def apply_template_with_tools(t: Target) -> Any:
    """Tools are in the prompt."""
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    turns = [{"role": "user", "content": "hello"}]
    prompt = _post(t, "/apply-template", messages=turns, tools=[tool])["prompt"]
    assert "weather" in prompt
    return prompt


@check(HTTP)
def input_tokens(t: Target) -> Any:
    """Counting a chat's tokens gives what its answer will tell as prompt_tokens."""
    turns = [{"role": "user", "content": COUNTING}]
    counted = _post(t, "/v1/chat/completions/input_tokens", messages=turns)["input_tokens"]
    assert counted == t.chat(max_tokens=1)["usage"]["prompt_tokens"]
    return counted


@check(HTTP)
def infill(t: Target) -> Any:
    """/infill fills in, or says that the model cannot."""
    body = {"model": t.exact, "input_prefix": "def f(", "input_suffix": "    return x"}
    answer = t.post("/infill", {**body, "n_predict": 4, "temperature": 0})
    assert answer.status_code in (200, 501)
    return answer.status_code


@check(HTTP)
def llama_stream_and_plain_time_alike(t: Target) -> Any:
    """Usage in a stream is the plain answer's."""
    plain = t.chat()["usage"]
    events = t.chat_events(stream_options={"include_usage": True})
    assert events[-1]["usage"] == plain
    assert text_of(events)
    return plain["total_tokens"]
