from __future__ import annotations

import pytest

from router.core.errors import UpstreamFailed
from router.upstream import UpstreamRequest
from router.upstream.origin import Origin, request_head


def ask(headers=(), body=b"", method="POST", path="/v1/x") -> UpstreamRequest:
    return UpstreamRequest("http://h:1", method, path, body, headers)


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://127.0.0.1:8081", "127.0.0.1", 8081, b"127.0.0.1:8081"),
        ("http://worker-1", "worker-1", 80, b"worker-1"),
        ("http://[::1]:9/", "::1", 9, b"[::1]:9"),
    ],
)
def test_address_is_read(url, host, port, authority):
    origin = Origin.parse(url)
    assert (origin.host, origin.port, origin.authority) == (host, port, authority)


@pytest.mark.parametrize(
    "url",
    [
        "-",
        "127.0.0.1:80",
        "https://h",
        "http://",
        "http://h:0x1",
        "http://h/v1",
        "http://h?x=1",
        "http://u:p@h",
        "http://hé",
        "ftp://h",
        "http://h:65536",
    ],
)
def test_other_addresses_are_refused(url):
    with pytest.raises(UpstreamFailed) as caught:
        Origin.parse(url)
    assert caught.value.extra == {"sent": False}


@pytest.mark.parametrize(
    ("method", "body", "expected"),
    [
        ("POST", b"abc", b"content-length: 3\r\n"),
        ("POST", b"", b"content-length: 0\r\n"),
        ("GET", b"", b""),
        ("DELETE", b"", b""),
        ("DELETE", b"x", b"content-length: 1\r\n"),
    ],
)
def test_length_is_stated_where_a_body_may_be(method, body, expected):
    origin = Origin.parse("http://h:1")
    head = request_head(origin, ask(((b"A", b"b"),), body, method))
    start = f"{method} /v1/x HTTP/1.1\r\n".encode()
    assert head == start + b"host: h:1\r\nA: b\r\n" + expected + b"\r\n"


def test_start_of_a_request_is_rendered_once():
    origin = Origin.parse("http://h:1")
    heads = {request_head(origin, ask(((b"a", b"b"),), body)) for body in (b"1", b"22", b"333")}
    assert (len(heads), len(origin.starts)) == (3, 1)


def test_unlike_requests_do_not_pile_up():
    origin = Origin.parse("http://h:1")
    for number in range(2_000):
        request_head(origin, ask(((b"trace", b"%d" % number),)))
    assert len(origin.starts) <= 256


def test_a_refused_request_is_not_remembered():
    origin = Origin.parse("http://h:1")
    for _ in range(2):
        with pytest.raises(UpstreamFailed):
            request_head(origin, ask(((b"a", b"b\r\nc: d"),)))
    assert origin.starts == {}


def test_https_is_for_the_transport_that_speaks_it():
    origin = Origin.parse("https://h", ("http", "https"))
    assert (origin.host, origin.port) == ("h", 443)
