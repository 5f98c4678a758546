"""Requests that cannot be served: each with the status and the words that help."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai

from tests.conformance.suite import Check, add, check, raised
from tests.conformance.target import refusal

if TYPE_CHECKING:
    from tests.conformance.target import Target

HTTP, SDK = "http", "openai-python"
CHAT = "/v1/chat/completions"

# Name, fields, the field that the refusal must name, and what the check says.
WRONG_FIELDS: tuple[tuple[str, dict[str, Any], str, str], ...] = (
    ("wrong_stream", {"stream": "yes"}, "stream", "`stream` must be a boolean."),
    ("wrong_n_zero", {"n": 0}, "n", "`n: 0` is refused."),
    ("wrong_n_text", {"n": "two"}, "n", "`n` must be a number."),
    ("wrong_max_tokens", {"max_tokens": "many"}, "max_tokens", "`max_tokens` must be a number."),
    ("wrong_temperature", {"temperature": "hot"}, "temperature", "`temperature` too."),
    ("wrong_stop", {"stop": 5}, "stop", "`stop` must be text."),
    ("wrong_tools", {"tools": {}}, "tools", "`tools` must be an array."),
    ("wrong_options", {"stream_options": 1}, "stream_options", "`stream_options` is an object."),
    ("wrong_format", {"response_format": "json"}, "response_format", "So is `response_format`."),
    ("wrong_messages", {"messages": "hi"}, "messages", "`messages` must be an array."),
    ("wrong_message", {"messages": [{}]}, "messages[0].role", "A message needs a role."),
    ("empty_messages", {"messages": []}, "messages", "Empty `messages` are refused."),
)


def _is_refused(fields: dict[str, Any], param: str) -> Any:
    def run(t: Target) -> None:
        answer = t.post(CHAT, t.body(**fields))
        error = refusal(answer, 400)
        assert error["type"] == "invalid_request_error"
        assert error["param"] == param
        assert answer.headers["x-should-retry"] == "false"

    return run


for _name, _fields, _param, _says in WRONG_FIELDS:
    add(Check(_name, HTTP, _says, _is_refused(_fields, _param)))


def _raw(t: Target, body: bytes, content_type: str = "application/json") -> Any:
    return t.http.post(CHAT, content=body, headers={"content-type": content_type})


@check(HTTP)
def body_that_is_not_json(t: Target) -> None:
    """A body that is not JSON is 400 invalid_json."""
    assert refusal(_raw(t, b'{"model": "x", '), 400)["code"] == "invalid_json"


@check(HTTP)
def body_that_is_empty(t: Target) -> None:
    """So is none at all."""
    assert refusal(_raw(t, b""), 400)["code"] == "invalid_json"


@check(HTTP)
def body_that_is_no_object(t: Target) -> None:
    """And one that is JSON but no object."""
    assert refusal(_raw(t, b"[1]"), 400)["code"] == "invalid_json"


@check(HTTP)
def body_of_another_type(t: Target) -> None:
    """A content type other than JSON is a 415."""
    refusal(_raw(t, json.dumps(t.body()).encode(), "text/plain"), 415)


@check(HTTP)
def body_with_a_charset(t: Target) -> None:
    """application/json with a charset is JSON."""
    body = json.dumps(t.body(max_tokens=1)).encode()
    assert _raw(t, body, "application/json; charset=utf-8").status_code == 200


@check(HTTP)
def unknown_model(t: Target) -> None:
    """A model that does not exist is 404 model_not_found, whatever the path."""
    for path in (CHAT, "/v1/completions", "/v1/responses", "/v1/messages", "/tokenize"):
        body = {**t.body(model="nobody"), "prompt": "x", "input": "x", "content": "x"}
        error = refusal(t.post(path, body), 404)
        assert error["code"] == "model_not_found", path


@check(SDK)
def unknown_model_in_the_sdk(t: Target) -> None:
    """The SDK raises NotFoundError with the code."""
    error = raised(
        openai.NotFoundError, lambda: t.openai.chat.completions.create(**t.sdk_body(model="nobody"))
    )
    assert error.code == "model_not_found"


@check(HTTP)
def too_many_tokens(t: Target) -> None:
    """A prompt beyond the context is 400 context_length_exceeded, with both numbers."""
    error = refusal(t.post(CHAT, t.body("word " * 9000)), 400)
    assert error["code"] == "context_length_exceeded"
    assert error["n_prompt_tokens"] > error["n_ctx"] > 0


@check(HTTP)
def wrong_method(t: Target) -> None:
    """A path that takes another method is a 405 that names it."""
    for path in (CHAT, "/v1/completions", "/v1/messages", "/tokenize"):
        answer = t.http.get(path)
        refusal(answer, 405)
        assert answer.headers["allow"] == "POST", path
    answer = t.http.delete("/v1/models")
    refusal(answer, 405)
    assert "GET" in answer.headers["allow"]


@check(HTTP)
def unknown_path(t: Target) -> None:
    """A path that nobody serves is a 404 in the same form."""
    refusal(t.http.get("/v1/nothing"), 404)
    refusal(t.post("/v2/chat/completions", t.body()), 404)


@check(HTTP, gateway_only=True)
def too_large_a_body(t: Target) -> None:
    """A body beyond the limit is a 413 that says so."""
    answer = t.http.post(
        CHAT,
        content=b"{" + b" " * (70 * 1024 * 1024),
        headers={"content-type": "application/json"},
    )
    assert "larger" in refusal(answer, 413)["message"]


@check(HTTP)
def unknown_role(t: Target) -> Any:
    """A role that the model does not know is no failure of the server."""
    answer = t.post(CHAT, t.body(messages=[{"role": "narrator", "content": "hi"}]))
    assert answer.status_code in (200, 400)
    return answer.status_code


@check(HTTP)
def wrong_stop_limits(t: Target) -> Any:
    """A stop string that is empty or absent does no harm."""
    return t.chat(stop=None)["choices"][0]["message"]["content"]


@check(SDK)
def errors_are_the_sdks_own(t: Target) -> None:
    """Each refusal is the SDK's exception of its status, with message, type and param."""
    error = raised(
        openai.BadRequestError, lambda: t.openai.chat.completions.create(**t.sdk_body(messages=[]))
    )
    assert error.type == "invalid_request_error"
    assert error.param == "messages"
    assert error.body["message"]
