"""What llama-server leaves out of chat streams is added; its own events keep their bytes."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core import UpstreamFailed
from router.relay.choices import ChoiceMerger, missing_role
from tests.support.gateway import DONE, delta, event
from tests.support.http11_driver import split

ROLE = {"role": "assistant", "content": None}


def _piece(index: int, text: str | None = None, finish: str | None = None, **more) -> bytes:
    content = {} if text is None else {"content": text}
    choice = {"finish_reason": finish, "index": index, "delta": {**content, **more}}
    return event({"choices": [choice], "id": "c1", "object": "chat.completion.chunk"})


def _usage(completion: int) -> bytes:
    usage = {"prompt_tokens": 9, "completion_tokens": completion, "total_tokens": 9 + completion}
    return event({"choices": [], "id": "c1", "usage": usage})


def _bodies(data: bytes) -> list[dict]:
    return [orjson.loads(row[6:]) for row in data.split(b"\n\n") if row[:7] == b"data: {"]


BEGUN = [_piece(0, role="assistant"), _piece(1, role="assistant")]
TWO = [*BEGUN, _piece(1, "b"), _piece(0, "a"), _piece(1, finish="stop"), _usage(2)]
TWO += [_piece(0, finish="length"), _usage(3), DONE]


def test_a_stream_that_begins_with_a_role_is_left_alone():
    assert missing_role(_piece(0, role="assistant")) == b""
    assert missing_role(b": a comment\n\n") == b""
    assert missing_role(b'data: {"choices"') == b""
    assert missing_role(event({"error": {"message": "no"}})) == b""
    assert missing_role(event({"choices": [], "usage": {}})) == b""


def test_a_role_that_was_left_out_comes_first():
    added = missing_role(delta("x", timings={"predicted_n": 1}))
    (body,) = _bodies(added)
    assert body["choices"] == [{"finish_reason": None, "index": 0, "delta": ROLE}]
    assert body["id"] == "c1"
    assert "timings" not in body


@given(st.lists(st.integers(0, 2000), max_size=12))
def test_usage_of_several_choices_comes_once_and_counts_all(cuts):
    merger = ChoiceMerger(2)
    data = b"".join(map(merger.feed, split(b"".join(TWO), cuts))) + merger.finish()
    told = [body for body in _bodies(data) if "usage" in body]
    assert [body["usage"] for body in told] == [
        {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    ]
    kept = [one for one in TWO if b'"usage"' not in one]
    assert data == b"".join(kept[:-1]) + event(told[0]) + DONE


def test_without_usage_every_byte_stays():
    plain = [one for one in TWO if b'"usage"' not in one]
    merger = ChoiceMerger(2)
    assert merger.feed(b"".join(plain)) == b"".join(plain)


def test_each_choice_begins_with_its_role():
    merger = ChoiceMerger(2)
    data = merger.feed(_piece(1, "é") + _piece(0, "a") + _piece(1, "b"))
    assert [(b["choices"][0]["index"], b["choices"][0]["delta"]) for b in _bodies(data)] == [
        (1, ROLE),
        (1, {"content": "é"}),
        (0, ROLE),
        (0, {"content": "a"}),
        (1, {"content": "b"}),
    ]


def test_choices_of_text_have_no_role():
    text = event({"choices": [{"text": "a", "index": 0, "finish_reason": "stop"}]})
    assert ChoiceMerger(1).feed(text + DONE) == text + DONE


def test_a_choice_that_never_comes_is_a_failure():
    merger = ChoiceMerger(2)
    with pytest.raises(UpstreamFailed, match="left out 1 of 2"):
        merger.feed(_piece(0, "a", "stop") + DONE)


def test_comments_and_unknown_events_go_through():
    data = b": still there\n\nevent: x\ndata: {}\n\ndata: what\n\n"
    assert ChoiceMerger(2).feed(data) == data
