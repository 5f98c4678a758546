"""Requests are understood the same however their bytes are split, or handed over whole."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.support.http11_driver import split
from tests.support.wire import Wire, post

BODIES = st.lists(st.binary(max_size=60), min_size=1, max_size=4)
CUTS = st.lists(st.integers(0, 10_000), max_size=10)
NAME = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_", min_size=1, max_size=12)
VALUE = st.text("".join(chr(code) for code in range(33, 127)) + " ", max_size=30).map(str.strip)
FRAMING = {"host", "content-length", "connection", "expect", "transfer-encoding", "upgrade"}
HEADERS = st.lists(
    st.tuples(NAME.filter(lambda name: name.lower() not in FRAMING), VALUE), max_size=4
)
FOREIGN = st.sampled_from(
    [
        b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
        post(line=b"POST /v1/chat/completions HTTP/0.9"),
        post(line=b"POST /v1/chat/completions?a=b HTTP/1.1"),
        post(b"{}", b"expect: 100-continue"),
        post(b"{}", b"origin: http://a.page"),
        post(b"{}", b"content-length: 3"),
        post(b"{}", b"bad name: x"),
        post(b"{}", b"bare: \nlf: x"),
        post(b"{}", b" folded"),
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        b"2\r\n{}\r\n0\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\nhost: x\n\n",
        b"\x16\x03\x01\x02\x00\x01",
    ]
)


async def _fed(data: bytes, cuts: list[int]) -> Wire:
    wire = Wire()
    await wire.feed(split(data, cuts))
    return wire


@given(BODIES, HEADERS, CUTS)
def test_requests_in_a_row_are_served_in_order_at_any_split(bodies, headers, cuts):
    rows = [f"{name}: {value}".encode() for name, value in headers]
    wire = asyncio.run(_fed(b"".join(post(body, *rows) for body in bodies), cuts))
    assert [body for _, body in wire.seen] == bodies
    for name, value in {name.lower(): value for name, value in headers}.items():
        assert wire.seen[0][0][name.encode()] == value.encode()
    answers = [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(b), b) for b in bodies]
    assert wire.transport.sent == b"".join(answers)
    assert wire.transport.reading
    assert not wire.transport.closed
    assert wire.other.data == b""


@given(BODIES, FOREIGN, CUTS)
def test_what_is_unusual_is_handed_over_with_every_byte(bodies, foreign, cuts):
    ours = b"".join(post(body) for body in bodies)
    wire = asyncio.run(_fed(ours + foreign + b"and more", cuts))
    assert [body for _, body in wire.seen] == bodies
    assert wire.transport.protocol is wire.other
    assert wire.other.data == foreign + b"and more"
    assert wire.state.connections == set()


@given(st.binary(max_size=400), CUTS)
def test_noise_never_raises_and_is_never_answered(noise, cuts):
    wire = asyncio.run(_fed(noise, cuts))
    assert wire.transport.sent == b""
    assert wire.other.data in (noise, b"")
