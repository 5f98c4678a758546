"""The HTTP/1.1 client gives the same answer however the bytes are split, and the right one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.http11_driver import drive, pumped, split

TOKEN = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_", min_size=1, max_size=12)
VALUE = st.text("".join(chr(code) for code in range(33, 127)) + " ", min_size=1, max_size=30).map(
    str.strip
)
OWN = {"content-length", "transfer-encoding", "connection", "content-type", "upgrade"}
HEADER = st.tuples(TOKEN.filter(lambda name: name.lower() not in OWN), VALUE)
BODIES = st.lists(st.binary(min_size=1, max_size=40), max_size=6)


@dataclass(frozen=True)
class Answer:
    """A valid answer: its bytes and what a client must make of them."""

    data: bytes
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    reusable: bool


@st.composite
def answers(draw) -> Answer:
    status = draw(st.sampled_from([200, 201, 204, 304, 400, 404, 413, 500, 503]))
    headers = draw(st.lists(HEADER, max_size=4))
    parts = [] if status in (204, 304) else draw(BODIES)
    framing = draw(st.sampled_from(["length", "chunked", "eof"]))
    close = draw(st.booleans())
    stream = draw(st.booleans())
    if close:
        headers.append(("Connection", "close"))
    headers.append(("Content-Type", "text/event-stream" if stream else "application/json"))
    tail, framed = _frame(draw, framing, parts, status)
    rows = [f"{name}: {value}" for name, value in headers + framed]
    interim = draw(
        st.sampled_from(["", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 E\r\nl: x\r\n\r\n"])
    )
    text = interim + "\r\n".join([f"HTTP/1.1 {status} Reason", *rows]) + "\r\n\r\n"
    return Answer(
        text.encode() + tail,
        status,
        tuple((name.lower().encode(), value.encode()) for name, value in headers + framed),
        b"".join(parts),
        not close and not stream and (bool(framed) or status in (204, 304)),
    )


def _frame(draw, framing: str, parts: list[bytes], status: int):
    whole = b"".join(parts)
    if framing == "eof" or status in (204, 304):
        return whole, []
    if framing == "length":
        return whole, [("Content-Length", str(len(whole)))]
    extension = draw(st.sampled_from([b"", b";a=b", b';q="x"']))
    zeros = b"0" * draw(st.integers(0, 3))
    rows = [zeros + b"%x" % len(p) + extension + b"\r\n" + p + b"\r\n" for p in parts]
    trailer = draw(st.sampled_from([b"", b"x-checksum: 1\r\n"]))
    return b"".join(rows) + b"0\r\n" + trailer + b"\r\n", [("Transfer-Encoding", "chunked")]


@given(answers(), st.lists(st.integers(0, 10_000), max_size=8))
def test_valid_answer_is_understood_at_any_split(answer, cuts):
    result = drive(*split(answer.data, cuts))
    assert (result.status, result.headers) == (answer.status, answer.headers)
    assert (result.body, result.error) == (answer.body, "")
    assert result.reused == answer.reusable


@given(answers(), st.lists(st.integers(0, 10_000), max_size=8))
def test_a_pumped_answer_is_the_same_at_any_split(answer, cuts):
    result = pumped(*split(answer.data, cuts))
    assert (result.status, result.headers) == (answer.status, answer.headers)
    assert (result.body, result.error) == (answer.body, "")
    assert result.reused == answer.reusable


@given(answers(), st.integers(0, 10_000), st.lists(st.integers(0, 10_000), max_size=4))
def test_a_pumped_answer_that_is_cut_is_never_taken_for_a_whole_one(answer, cut, cuts):
    data = answer.data[: cut % len(answer.data)]
    result = pumped(*split(data, cuts))
    framed = any(n in (b"content-length", b"transfer-encoding") for n, _ in answer.headers)
    if framed or result.status == 0:
        assert result.error == "UpstreamFailed"
    assert answer.body.startswith(result.body)


@settings(max_examples=30)
@given(answers())
def test_valid_answer_is_understood_byte_by_byte(answer):
    result = drive(*(answer.data[i : i + 1] for i in range(len(answer.data))))
    assert (result.status, result.body, result.error) == (answer.status, answer.body, "")


@given(answers(), st.integers(0, 10_000))
def test_cut_answer_is_never_taken_for_a_whole_one(answer, cut):
    """Only a body that ends with the connection cannot tell."""
    data = answer.data[: cut % len(answer.data)]
    result = drive(data)
    framed = any(n in (b"content-length", b"transfer-encoding") for n, _ in answer.headers)
    if framed or result.status == 0:
        assert result.error == "UpstreamFailed"
    assert answer.body.startswith(result.body)


@given(answers(), st.binary(min_size=1, max_size=30), st.integers(0, 10_000))
def test_bytes_after_the_end_forbid_another_request(answer, rest, cut):
    framed = any(n in (b"content-length", b"transfer-encoding") for n, _ in answer.headers)
    if not framed or rest.strip(b"\r\n") == b"":
        return  # the rest is body, or the blank lines that some servers send between answers
    data = answer.data + rest
    result = drive(*split(data, [cut, len(answer.data)][: 1 + cut % 2]))
    assert (result.status, result.body, result.error) == (answer.status, answer.body, "")
    assert not result.reused


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=8))
def test_one_piece_per_read(parts):
    """What one read brought is one piece, what two reads brought is two."""
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    reads = [b"%x\r\n%b\r\n" % (len(p), p) for p in parts]
    assert drive(head, *reads, b"0\r\n\r\n").pieces == tuple(parts)
    assert drive(head + b"".join(reads) + b"0\r\n\r\n").pieces == (b"".join(parts),)


@pytest.mark.parametrize("method", ["HEAD"])
@given(answer=answers(), cuts=st.lists(st.integers(0, 10_000), max_size=4))
def test_head_request_has_no_body(method, answer, cuts):
    head = answer.data[: answer.data.rindex(b"\r\n\r\n") + 4] if not answer.body else None
    if head is None:
        return
    result = drive(*split(head, cuts), method=method)
    assert (result.status, result.body, result.error) == (answer.status, b"", "")
