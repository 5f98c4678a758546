from __future__ import annotations

import pytest

from router.upstream.exchange import HTTP11Limits
from tests.support.http11_driver import Driver, drive

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab"
SMALL = HTTP11Limits(head=1_000, chunk_line=500, high_water=1_000, low_water=300)


@pytest.mark.parametrize(
    "head",
    [
        b"content-length: 2\r\ncontent-length: 2",
        b"transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        b"transfer-encoding: gzip",
        b"transfer-encoding: chunked, gzip",
        b"x : y\r\ncontent-length: 2",
        b"x: y\r\n folded\r\ncontent-length: 2",
        b"content-length: 2\x00",
        b"content-length: 2, 2",
    ],
)
def test_a_head_that_leaves_a_doubt_is_refused(head):
    result = drive(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\nab")
    assert (result.status, result.error, result.reused) == (0, "UpstreamFailed", False)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\ncontent-length: 2\n\nab",
        b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/0.9 200 OK\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 099 Low\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 103 Hints\r\ncontent-length: 2\r\n\r\nab" + PLAIN,
        b"ICY 200 OK\r\n\r\n",
    ],
)
def test_other_protocols_are_refused(data):
    assert drive(data).error == "UpstreamFailed"


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_head_is_bounded(step):
    data = b"HTTP/1.1 200 OK\r\nx: " + b"a" * 2_000 + b"\r\ncontent-length: 2\r\n\r\nab"
    parts = [data[i : i + step] for i in range(0, len(data), step)]
    assert drive(*parts, limits=SMALL).error == "UpstreamFailed"
    assert drive(*parts).body == b"ab"


def test_interim_heads_are_bounded_together():
    hints = b"HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n"
    assert drive(*[hints] * 3, PLAIN, limits=SMALL).body == b"ab"
    assert drive(*[hints] * 100, PLAIN, limits=SMALL).error == "UpstreamFailed"


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize(
    "rest",
    [
        b"2;x=" + b"a" * 900 + b"\r\nab\r\n0\r\n\r\n",
        b"2\r\nab\r\n0\r\nx: " + b"a" * 900 + b"\r\n\r\n",
        b"0" * 900 + b"2\r\nab\r\n0\r\n\r\n",
    ],
)
def test_chunk_lines_and_trailers_are_bounded(step, rest):
    parts = [rest[i : i + step] for i in range(0, len(rest), step)]
    assert drive(CHUNKED, *parts, limits=SMALL).error == "UpstreamFailed"
    assert drive(CHUNKED, *parts).body == b"ab"


def test_many_small_chunks_are_not_an_oversize_line():
    rows = b"".join(b"1\r\n%c\r\n" % (97 + i % 26) for i in range(2_000))
    assert drive(CHUNKED + rows + b"0\r\n\r\n", limits=SMALL).error == ""


def test_trailers_are_not_headers():
    result = drive(CHUNKED + b"2\r\nab\r\n0\r\nserver: t\r\nx: y\r\n\r\n")
    assert result.headers == ((b"transfer-encoding", b"chunked"),)
    assert (result.body, result.error, result.reused) == (b"ab", "", True)


def test_connection_carries_one_answer_after_another():
    driver = Driver()
    for _ in range(5):
        driver.feed(PLAIN[:10], PLAIN[10:])
        assert driver.result().body == b"ab"
        assert driver.pool.idle == [driver.connection]
        driver.pool.idle.clear()
        driver.exchange = driver.send()
    assert bytes(driver.transport.written) == b"HEAD{}" * 6


def test_unasked_bytes_end_an_idle_connection():
    driver = Driver()
    driver.feed(PLAIN)
    driver.feed(b"HTTP/1.1 408 Timeout\r\n\r\n")
    assert driver.transport.aborted
    assert not driver.connection.is_fresh()


def test_a_request_not_fully_written_ends_the_connection():
    driver = Driver()
    driver.transport.unwritten = 10
    driver.feed(PLAIN)
    assert driver.result().body == b"ab"
    assert driver.transport.aborted


def test_large_request_bodies_are_not_copied():
    driver = Driver(body=b"x" * 100_000)
    assert bytes(driver.transport.written) == b"HEAD" + b"x" * 100_000


def test_reading_stops_while_too_much_waits_and_goes_on_after():
    driver = Driver(limits=SMALL)
    piece = b"c8\r\n" + b"x" * 200 + b"\r\n"
    driver.feed(CHUNKED)
    for _ in range(5):
        driver.feed(piece)
        assert driver.transport.reading
    driver.feed(piece)
    assert not driver.transport.reading
    reader = driver.exchange.chunks()
    for expected in (False, False, False, False, True):
        assert len(_next(reader)) == 200
        assert driver.transport.reading is expected
    driver.feed(b"0\r\n\r\n")
    assert _next(reader) == b"x" * 200


def test_reading_goes_on_for_the_next_request():
    driver = Driver(limits=SMALL)
    driver.feed(CHUNKED, b"7d0\r\n" + b"x" * 2_000)
    assert not driver.transport.reading
    driver.feed(b"\r\n0\r\n\r\n")  # was already on its way
    assert driver.transport.reading
    assert len(driver.result().body) == 2_000


def _next(reader) -> bytes:
    """The next item, which must be there already."""
    try:
        anext(reader).send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("nothing there")
