"""What a body may be, whom it addresses, and what is said when it is neither."""

from __future__ import annotations

import orjson
import pytest

from router.api.schema import find_model, parse
from router.core import (
    BadRequest,
    Endpoint,
    Forbidden,
    GatewayError,
    NotFound,
    Principal,
    UnsupportedMediaType,
)
from router.fleet import Fleet
from router.relay import Client
from tests.fakes.gateway import HandClock, record

CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}]}


def _fleet(*models: str) -> Fleet:
    fleet = Fleet(HandClock(), dict.fromkeys(models, ()))
    fleet.update([record(aliases=("gpt-4o-mini",)), record("mtp")])
    return fleet


def _client(headers: dict[str, str] | None = None) -> Client:
    rows = {"content-type": "application/json", **(headers or {})}
    scope = {"headers": [(k.encode(), v.encode()) for k, v in rows.items()]}
    return Client(scope, None, None, "id-1")


def _parse(body, *, endpoint=Endpoint.CHAT, headers=None, principal=None, fleet=None):
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    return parse(
        endpoint,
        data,
        _client(headers),
        principal or Principal(),
        fleet or _fleet(),
        max_grammar_bytes=1000,
    )


def test_a_good_body_is_kept_as_it_is():
    data = b' {"model":"gpt-4o-mini","messages":[{"role":"user","content":null}],"x":1e2} '
    request = _parse(data, headers={"x-session-id": " s1 "})
    assert request.body == data
    assert request.model == "tiny"
    assert request.payload["x"] == 100.0
    assert not request.stream
    assert request.conversation == "s1"
    assert request.id == "id-1"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": ["hi"]}, "messages[0].role"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"model": 3}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": True}, "stream_options"),
        ({"n": 0}, "n"),
        ({"n": 1.5}, "n"),
        ({"n": 1000}, "n"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": -2}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": False}, "temperature"),
        ({"tools": {}}, "tools"),
        ({"stop": 3}, "stop"),
        ({"stop": ["a", 3]}, "stop"),
        ({"grammar": 3}, "grammar"),
        ({"grammar": "x" * 1001}, "grammar"),
        ({"json_schema": {"x": "y" * 1000}}, "json_schema"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"schema": "x" * 1000}}, "response_format"),
        ({"chat_template_kwargs": []}, "chat_template_kwargs"),
    ],
)
def test_a_wrong_field_is_named(change, param):
    with pytest.raises(BadRequest) as refused:
        _parse(CHAT | change)
    assert refused.value.param == param
    assert refused.value.code == "invalid_value"


@pytest.mark.parametrize(
    "change",
    [
        {"n": None, "stream": None, "max_tokens": None, "stop": None, "tools": None},
        {"max_tokens": -1, "temperature": 0, "top_p": 1, "stop": ["a"], "grammar": "root ::= x"},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        {"unknown": {"deep": [1]}, "response_format": {"type": "json_object"}},
    ],
)
def test_right_and_unknown_fields_pass(change):
    assert _parse(CHAT | change).payload.keys() >= change.keys()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"null", b'{"a":NaN}', b"\xff"])
def test_what_is_no_json_object_is_told_so(body):
    with pytest.raises(BadRequest) as refused:
        _parse(body)
    assert refused.value.code == "invalid_json"


def test_deep_nesting_is_refused_and_not_followed():
    with pytest.raises(BadRequest):
        _parse(b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_another_content_type_is_refused(kind):
    with pytest.raises(UnsupportedMediaType):
        _parse(CHAT, headers={"content-type": kind})


def test_a_charset_does_no_harm():
    assert _parse(CHAT, headers={"content-type": "Application/JSON; charset=utf-8"})


def test_names_aliases_and_pins_are_found():
    fleet = _fleet()
    assert find_model("tiny", fleet).model == "tiny"
    assert find_model("gpt-4o-mini", fleet).model == "tiny"
    pinned = find_model("gpt-4o-mini@mtp", fleet)
    assert (pinned.model, pinned.worker) == ("tiny", "mtp")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("gpt-5", "model_not_found"),
        ("", "model_not_found"),
        ("@mtp", "model_not_found"),
        ("gpt-5@mtp", "model_not_found"),
        ("tiny@", "worker_not_found"),
        ("tiny@nobody", "worker_not_found"),
    ],
)
def test_an_unknown_name_is_a_404_that_says_what_is_missing(name, code):
    with pytest.raises(NotFound) as refused:
        find_model(name, _fleet())
    assert refused.value.code == code


def test_without_a_model_the_only_one_is_meant():
    assert find_model(None, _fleet()).model == "tiny"
    with pytest.raises(BadRequest):
        find_model(None, _fleet("another"))


def test_wishes_come_from_headers():
    headers = {"x-specroute-worker": "mtp", "x-specroute-mode": "ar", "x-specroute-class": "prose"}
    wishes = _parse(CHAT, headers=headers).wishes
    assert (wishes.worker, wishes.mode, wishes.workload_class) == ("mtp", "ar", "prose")
    assert _parse(CHAT, headers={"x-specroute-mode": "auto"}).wishes.mode is None


def test_two_pins_must_agree():
    body = CHAT | {"model": "tiny@mtp"}
    assert _parse(body, headers={"x-specroute-worker": "mtp"}).wishes.worker == "mtp"
    with pytest.raises(BadRequest):
        _parse(body, headers={"x-specroute-worker": "plain"})


def test_an_unknown_class_is_refused():
    with pytest.raises(BadRequest) as refused:
        _parse(CHAT, headers={"x-specroute-class": "poetry"})
    assert "prose" in refused.value.message


def test_a_key_is_held_to_its_models():
    allowed = Principal(models=frozenset({"tiny"}))
    assert _parse(CHAT, principal=allowed)
    with pytest.raises(Forbidden):
        _parse(CHAT, principal=Principal(models=frozenset({"big"})))


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        (Endpoint.COMPLETIONS, {}),
        (Endpoint.COMPLETIONS, {"prompt": 3}),
        (Endpoint.COMPLETIONS, {"prompt": []}),
        (Endpoint.RESPONSES, {}),
        (Endpoint.EMBEDDINGS, {}),
        (Endpoint.RERANK, {"documents": []}),
        (Endpoint.MESSAGES, {"messages": []}),
    ],
)
def test_each_endpoint_needs_its_own_field(endpoint, body):
    with pytest.raises(GatewayError) as refused:
        _parse({"model": "tiny", **body}, endpoint=endpoint)
    assert refused.value.status == 400


def test_prompts_may_be_text_or_tokens():
    for prompt in ("text", ["a", "b"], [1, 2, 3]):
        assert _parse({"prompt": prompt}, endpoint=Endpoint.COMPLETIONS)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize(("levels", "fine"), [(99, True), (100, False), (900, False)])
def test_nesting_is_bounded_before_anybody_recurses(opening, levels, fine):
    closing = "]" if opening == "[" else "}"
    inner = (opening * levels + "1" + closing * levels).encode()
    data = orjson.dumps(CHAT)[:-1] + b',"anything":' + inner + b"}"
    if fine:
        assert orjson.dumps(_parse(data).payload)  # and it can be written again
        return
    with pytest.raises(BadRequest, match="nested deeper than 100"):
        _parse(data)


def test_many_brackets_are_no_depth():
    messages = [{"role": "user", "content": "{[" * 500}] * 300
    assert len(_parse({"model": "tiny", "messages": messages}).payload["messages"]) == 300


@pytest.mark.parametrize("name", ["grammar", "json_schema", "response_format", "text"])
def test_whatever_becomes_a_grammar_is_bounded_in_size(name):
    value = "x" * 2000 if name == "grammar" else {"schema": {"const": "x" * 2000}}
    with pytest.raises(BadRequest) as refused:
        _parse({**CHAT, name: value})
    assert refused.value.param == name
