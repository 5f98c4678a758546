from __future__ import annotations

import orjson
import pytest

from router.upstream.sse import (
    HEAD_SAMPLE,
    TAIL_LIMIT,
    SSEEvent,
    SSEParser,
    StreamTap,
    UsageFilter,
    event_objects,
    plain_result,
)


def event(body) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def chat(reason=None, **delta) -> bytes:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


ROLE = chat(role="assistant", content=None)
USAGE = {"completion_tokens": 3, "prompt_tokens": 5, "total_tokens": 8}
TIMINGS = {"predicted_n": 3, "predicted_ms": 4.5}
DONE = b"data: [DONE]\n\n"


def watched(*chunks: bytes) -> StreamTap:
    tap = StreamTap()
    for chunk in chunks:
        tap.feed(chunk)
    return tap


@pytest.mark.parametrize(
    ("status", "details", "reason"),
    [
        ("completed", None, "completed"),
        ("incomplete", {"reason": "max_output_tokens"}, "max_output_tokens"),
        ("in_progress", None, None),
    ],
)
def test_a_response_says_how_it_ended(status, details, reason):
    body = {"object": "response", "status": status, "incomplete_details": details}
    assert plain_result(orjson.dumps(body)).finish_reason == reason
    assert watched(event({"response": body})).result().finish_reason == reason


def test_parser_dispatches_types_ids_and_several_data_lines():
    parser = SSEParser()
    data = b": hello\nevent: delta\nid: 7\nretry: 10\ndata: a\ndata\ndata:b\n\ndata: c\n\n"
    assert parser.feed(data) == [SSEEvent("a\n\nb", "delta", "7"), SSEEvent("c", "message", "7")]


def test_parser_keeps_what_is_unfinished():
    parser = SSEParser()
    assert not parser.is_amid
    assert parser.feed(b"data: a") == []
    assert parser.is_amid
    assert parser.feed(b"\n\n") == [SSEEvent("a")]
    assert not parser.is_amid


@pytest.mark.parametrize("piece", [b"x", b"data: x\n"])
def test_parser_refuses_an_endless_event(piece):
    parser = SSEParser(event_limit=100)

    def feed() -> None:
        for _ in range(200):
            parser.feed(piece)

    with pytest.raises(ValueError, match="more than 100 bytes"):
        feed()


def test_objects_are_read_and_the_rest_passed_over():
    raw = b"data: 5\n\ndata: nonsense\n\n" + event({"a": 1}) + DONE + event([1]) + b"data: {"
    assert list(event_objects(raw)) == [{"a": 1}]


@pytest.mark.parametrize(
    "first",
    [
        chat(content="x"),
        chat(reasoning_content="x"),
        chat(tool_calls=[{"index": 0}]),
        event({"choices": [{"text": "x", "index": 0}]}),
        event({"content": "x", "stop": False}),
        event({"type": "content_block_delta", "delta": {"text": "x"}}),
        event({"type": "response.output_text.delta", "delta": "x"}),
    ],
)
def test_first_content_is_told_once(first):
    tap = StreamTap()
    before = [b": ping\n\n", ROLE, chat(content=""), event({"choices": [], "prompt_progress": {}})]
    before += [event({"type": "message_start", "message": {}}), event({"content": ""})]
    assert not any(map(tap.feed, before))
    assert not tap.first_content
    assert [tap.feed(first), tap.feed(first)] == [1, 1]
    assert tap.first_content


def test_a_finished_stream_tells_everything():
    last = {"choices": [], "model": "m", "usage": USAGE, "timings": TIMINGS}
    tap = watched(ROLE, *[chat(content="x")] * 3, chat("stop"), event(last), DONE)
    result = tap.result()
    assert (result.usage, result.timings, result.model) == (USAGE, TIMINGS, "m")
    assert (result.finish_reason, result.saw_done, result.error) == ("stop", True, None)
    assert result.content_events == 3


def test_a_cut_stream_counts_its_content():
    result = watched(ROLE + chat(content="x"), chat(content="x") * 2, chat(content="x")[:20])
    assert result.result().content_events == 4
    assert not result.result().saw_done
    assert watched(ROLE).result().content_events == 0


def test_timings_may_ride_on_the_finish_event_or_in_usage():
    assert watched(event({"choices": [], "timings": TIMINGS})).result().timings == TIMINGS
    inside = {"choices": [], "usage": {**USAGE, "timings": TIMINGS}}
    assert watched(event(inside)).result().timings == TIMINGS


def test_an_error_event_is_seen():
    error = {"code": 500, "message": "Compute error.", "type": "server_error"}
    result = watched(ROLE, chat(content="x"), event({"error": error})).result()
    assert (result.error, result.saw_done) == (error, False)


def test_other_dialects_end_too():
    messages = b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end"'
    messages += b',"stop_sequence":null},"usage":{"output_tokens":3}}\n\n'
    messages += b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    result = watched(messages).result()
    assert (result.usage, result.finish_reason, result.saw_done) == (
        {"output_tokens": 3},
        "end",
        True,
    )
    done = {"type": "response.completed", "response": {"usage": USAGE, "model": "m"}}
    result = watched(b"event: response.completed\n" + event(done)).result()
    assert (result.usage, result.model, result.saw_done) == (USAGE, "m", True)


def test_memory_is_bounded_whatever_comes():
    tap = StreamTap()
    for _ in range(20_000):
        tap.feed(chat(content="word"))
    assert sum(map(len, tap._tail)) < 40_000
    assert len(tap.sample) == HEAD_SAMPLE
    for _ in range(80):
        tap.feed(b"x" * 65_536)
    assert sum(map(len, tap._tail)) <= 3 * TAIL_LIMIT
    assert tap.result().content_events >= 19_990


def test_one_large_last_event_is_kept_whole():
    tap = watched(ROLE, *[chat(content="x")] * 500, chat("stop"))
    large = event({"choices": [], "usage": USAGE, "prompt": "y" * 300_000})
    for at in range(0, len(large), 1_000):
        tap.feed(large[at : at + 1_000])
    result = tap.result()
    assert (result.usage, result.finish_reason, result.content_events) == (USAGE, "stop", 500)


def test_first_content_larger_than_any_event_is_content_still():
    tap = StreamTap()
    seen = [tap.feed(b"data: " + b"x" * 1_000_000) for _ in range(20)]
    assert seen.count(True) == 1


def test_plain_answers_tell_the_same():
    choice = {"finish_reason": "stop", "message": {"content": "x"}}
    body = {"choices": [choice], "usage": USAGE, "timings": TIMINGS, "model": "m"}
    result = plain_result(orjson.dumps(body))
    assert (result.usage, result.timings, result.finish_reason) == (USAGE, TIMINGS, "stop")
    assert result.saw_done
    assert not plain_result(b"<html>").saw_done


def test_filter_passes_plain_chunks_as_the_same_object():
    chunk = chat(content="x")
    assert UsageFilter().feed(chunk) is chunk


def test_filter_hides_the_usage_event_only():
    hide = UsageFilter()
    usage = event({"choices": [], "usage": USAGE})
    kept = event({"choices": [], "prompt_filter_results": [], "usage": None})
    data = kept + chat(content='"usage"') + b": ping\n" + usage + DONE
    assert hide.feed(data) == kept + chat(content='"usage"') + b": ping\n" + DONE


@pytest.mark.parametrize(
    "start",
    [
        b'data: {"choices":[{"index":0,',
        b"data: [DO",
        b": comment",
        b'data: { "choices" : [ {',
        b"\n",
    ],
)
def test_filter_holds_back_nothing_that_is_certainly_wanted(start):
    assert UsageFilter().feed(start) == start


def test_filter_holds_back_what_may_be_the_usage_event_and_gives_it_up_at_the_end():
    hide = UsageFilter()
    assert hide.feed(b'data: {"choices":[') == b""
    assert hide.finish() == b'data: {"choices":['
    assert hide.finish() == b""
    assert hide.feed(event({"choices": [], "usage": USAGE})[:-2]) == b""
    assert hide.finish() == b""  # the usage event, only its blank line is missing


def test_filter_does_not_hold_back_without_limit():
    hide = UsageFilter()
    out = sum(len(hide.feed(b'{"id":"' + b"x" * 1_000)) for _ in range(200))
    assert out > 130_000
