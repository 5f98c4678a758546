from __future__ import annotations

import orjson
import pytest

from router.core.errors import BadRequest, GatewayError, UpstreamFailed
from router.upstream.assemble import ANSWER_LIMIT, Assembler, can_assemble, upstream_body

TOP = {"created": 1, "id": "chatcmpl-1", "model": "m", "system_fingerprint": "b1"}
USAGE = {"completion_tokens": 3, "prompt_tokens": 5, "total_tokens": 8}


def event(body) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def chat(delta, reason=None, **more) -> bytes:
    choice = {"finish_reason": reason, "index": 0, "delta": delta, **more}
    return event({"choices": [choice], **TOP, "object": "chat.completion.chunk"})


def usage(**more) -> bytes:
    body = {"choices": [], **TOP, "object": "chat.completion.chunk", "usage": USAGE}
    return event({**body, "timings": {"predicted_n": 3}, **more}) + b"data: [DONE]\n\n"


def assembled(*chunks: bytes) -> dict:
    assembler = Assembler()
    for chunk in chunks:
        assembler.feed(chunk)
    return orjson.loads(assembler.body())


ROLE = chat({"role": "assistant", "content": None})


def test_chat_text_is_joined():
    answer = assembled(
        ROLE, chat({"content": "a"}), chat({"content": "b"}), chat({}, "stop"), usage()
    )
    assert answer == {
        "choices": [
            {
                "finish_reason": "stop",
                "index": 0,
                "message": {"role": "assistant", "content": "ab"},
            }
        ],
        **TOP,
        "object": "chat.completion",
        "usage": USAGE,
        "timings": {"predicted_n": 3},
    }
    assert list(answer)[:5] == ["choices", "created", "model", "system_fingerprint", "object"]


def test_reasoning_comes_beside_the_content():
    pieces = [chat({"reasoning_content": "hm"}), chat({"reasoning_content": "m"})]
    answer = assembled(ROLE, *pieces, chat({"content": "4"}), chat({}, "stop"), usage())
    message = answer["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "4", "reasoning_content": "hmm"}


def test_tool_calls_are_put_together_by_index():
    def call(index, arguments, **start) -> bytes:
        function = {**({"name": start.pop("name")} if start else {}), "arguments": arguments}
        return chat({"tool_calls": [{"index": index, **start, "function": function}]})

    answer = assembled(
        ROLE,
        call(0, "", id="c0", type="function", name="f"),
        call(0, '{"a":'),
        call(0, "1}"),
        call(1, "{", id="c1", type="function", name="g"),
        call(1, "}"),
        chat({}, "tool_calls"),
        usage(),
    )
    assert answer["choices"][0]["message"] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c0", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
            {"id": "c1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }


def test_logprobs_are_joined():
    rows = [{"token": "a"}, {"token": "b"}]
    pieces = [chat({"content": r["token"]}, logprobs={"content": [r]}) for r in rows]
    answer = assembled(ROLE, *pieces, chat({}, "length"), usage())
    assert answer["choices"][0]["logprobs"] == {"content": rows}


def test_text_completion():
    def text(piece, reason=None, **more) -> bytes:
        choice = {"text": piece, "index": 0, "logprobs": None, "finish_reason": reason}
        return event({"choices": [choice], **TOP, "object": "text_completion", **more})

    answer = assembled(text("a"), text("b"), text("", "stop", usage=USAGE))
    choice = {"text": "ab", "index": 0, "logprobs": None, "finish_reason": "stop"}
    assert answer == {"choices": [choice], **TOP, "object": "text_completion", "usage": USAGE}


def test_fields_of_other_engines_survive_and_progress_does_not():
    late = usage(service_tier="x", prompt_progress={"total": 5}, nothing=None)
    answer = assembled(ROLE, chat({"content": "a", "refusal": None}), chat({}, "stop", x=1), late)
    assert answer["service_tier"] == "x"
    assert answer["choices"][0]["x"] == 1
    assert not {"prompt_progress", "nothing"} & set(answer)


def test_an_error_event_is_the_workers_refusal():
    error = {"code": 400, "message": "no", "type": "invalid_request_error"}
    with pytest.raises(BadRequest, match="no"):
        assembled(ROLE, event({"error": error}))


@pytest.mark.parametrize(
    "error",
    [{"code": 500, "message": "m"}, {"code": "x"}, {"code": 12}, "text", None, {"code": True}],
)
def test_an_error_event_of_any_shape_is_a_failure(error):
    with pytest.raises(GatewayError) as caught:
        assembled(ROLE, event({"error": error}))
    assert isinstance(caught.value, UpstreamFailed)


@pytest.mark.parametrize("chunks", [[], [ROLE], [ROLE, chat({"content": "a"})], [b"{}"]])
def test_a_stream_without_an_end_is_a_failure(chunks):
    with pytest.raises(UpstreamFailed, match="ended early"):
        assembled(*chunks)


def test_an_answer_without_limit_is_a_failure():
    assembler, piece = Assembler(), b": " + b"x" * 1_048_574 + b"\n\n"

    def feed() -> None:
        for _ in range(ANSWER_LIMIT // 1_048_576 + 1):
            assembler.feed(piece)

    with pytest.raises(UpstreamFailed, match="larger than"):
        feed()


@pytest.mark.parametrize(
    "body",
    [
        event({"choices": {}}),
        event({"choices": [5]}),
        chat({"tool_calls": 5}),
        chat({"tool_calls": [5, {}, {"function": 5}]}),
        chat({"content": "a"}, logprobs=5),
        chat({"content": "a"}, logprobs={"content": 5}),
    ],
)
def test_odd_events_do_no_harm(body):
    assert assembled(ROLE, body, chat({}, "stop"))["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({}, True),
        ({"n": 1, "prompt": "a"}, True),
        ({"prompt": ["a"]}, True),
        ({"prompt": [1, 2, 3]}, True),
        ({"prompt": [1, "a", 3]}, True),
        ({"prompt": ["a", "b"]}, False),
        ({"prompt": [[1], [2]]}, False),
        ({"n": 2}, False),
        ({"n": "1"}, False),
        ({"best_of": 3}, False),
        ({"verbose": True}, False),
        ({"messages": [], "logprobs": True}, False),
        ({"prompt": "a", "logprobs": 2}, False),
        ({"prompt": "a", "logprobs": 0}, True),
        ({"messages": [], "logprobs": False}, True),
        ({"messages": [{"role": "user"}]}, True),
        ({"messages": [{"role": "user"}, {"role": "assistant", "content": "1"}]}, False),
    ],
)
def test_what_can_be_assembled(payload, expected):
    assert can_assemble(payload) is expected


WANTED = {"stream": True, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":[],"n":1}',
        b'  {"messages":[],"stream":false,"n":1}',
        b'{"stream" : false}',
        b'{"stream":null,"a":"\\"stream\\":false"}',
        b'{"stream":true,"a":1.00,"b":12345678901234567890}',
        b'{"stream":false,"deep":{"stream":false}}',
        b'{"stream":false,"stream_options":{"x":1}}',
        b'{"stream":0,"deep":{"stream":false}}',
        b'{"stream_options":null,"a":1}',
        b"{}",
    ],
)
def test_body_asks_for_a_counted_stream_and_is_else_the_same(body):
    payload = orjson.loads(body)
    got = orjson.loads(upstream_body(payload, body))
    options = payload.get("stream_options") or {}
    assert got == {**payload, **WANTED, "stream_options": {**options, "include_usage": True}}


def test_bytes_of_the_body_are_kept():
    body = b'{"stream":false, "temperature":1.00, "seed":1e2}'
    assert upstream_body(orjson.loads(body), body) == (
        b'{"stream_options":{"include_usage":true},"stream":true, "temperature":1.00, "seed":1e2}'
    )


def test_body_that_asks_already_is_not_touched():
    body = b'{"stream":true,"stream_options":{"include_usage":true}}'
    assert upstream_body(orjson.loads(body), body) is body


def test_events_alike_but_for_their_text_are_read_by_their_text():
    hard = ['say "x"', "back\\", '\\"', "}}]", '"delta":{"content":"', "ü😀", "", "\n\n", "end"]
    pieces = [chat({"content": text}) for text in ["a", *hard, "b"]]
    answer = assembled(ROLE, *pieces, chat({}, "stop"), usage())
    assert answer["choices"][0]["message"]["content"] == "".join(["a", *hard, "b"])


def test_an_event_that_differs_otherwise_is_read_whole():
    other = event({"choices": [{"finish_reason": None, "index": 0, "delta": {"content": "y"}}]})
    renamed = chat({"content": "z"}).replace(b'"model":"m"', b'"model":"n"')
    first, again = chat({"content": "x"}), chat({"content": "x"})
    tool = chat({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]})
    answer = assembled(ROLE, first, again, other, renamed, tool, chat({}, "stop"))
    message = answer["choices"][0]["message"]
    assert message["content"] == "xxyz"
    assert message["tool_calls"] == [{"id": "c", "function": {"name": "f"}}]
    assert answer["model"] == "m"  # the last that was said


def test_what_only_looks_like_an_event_of_the_same_kind_is_not_taken_for_one():
    frame = chat({"content": "x"})
    number = frame.replace(b'"x"', b"7")
    two = frame.replace(b'"x"', b'"x","reasoning_content":"r"')
    assembler = Assembler()
    for chunk in (ROLE, frame, frame, number, two, frame, chat({}, "stop")):
        assembler.feed(chunk)
    message = assembler.payload()["choices"][0]["message"]
    assert message["reasoning_content"] == "r"
    assert message["content"] == "xx"  # what was no string has been replaced
