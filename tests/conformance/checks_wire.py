"""Plain curl and raw sockets: what no SDK shows."""

from __future__ import annotations

import json
import select
import shutil
import socket
import subprocess
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.conformance.suite import check
from tests.conformance.target import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.conformance.target import Target

CURL, SOCKET = "curl", "socket"
CHAT = "/v1/chat/completions"


def curl(t: Target, path: str, *options: str, body: Any = None) -> str:
    """What curl prints."""
    program = shutil.which("curl")
    assert program, "curl is not installed"
    given = ["-H", "content-type: application/json", "-d", json.dumps(body)] if body else []
    key = ["-H", f"authorization: Bearer {t.api_key}"]
    argv = [program, "-sS", "--max-time", str(PATIENCE), *key, *given, *options, t.base_url + path]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@check(CURL)
def curl_chat(t: Target) -> Any:
    """curl with -d gets an answer."""
    answer = json.loads(curl(t, CHAT, body=t.body()))
    return answer["choices"][0]["message"]["content"]


@check(CURL)
def curl_stream(t: Target) -> Any:
    """curl -N sees the events and their end."""
    text = curl(t, CHAT, "-N", body=t.body(stream=True))
    assert text.startswith("data: {")
    assert text.endswith("data: [DONE]\n\n")
    return text.count("\n\n")


@check(CURL)
def curl_http10(t: Target) -> Any:
    """An HTTP/1.0 client gets an answer."""
    answer = json.loads(curl(t, CHAT, "--http1.0", body=t.body()))
    return answer["choices"][0]["message"]["content"]


@check(CURL)
def curl_expect_continue(t: Target) -> None:
    """A client that waits for 100 Continue is told to go on."""
    code = curl(
        t,
        CHAT,
        *("-H", "Expect: 100-continue", "-o", "/dev/null", "-w", "%{http_code}"),
        body=t.body(max_tokens=1, padding="x" * 100_000),
    )
    assert code == "200"


@check(CURL)
def curl_chunked_upload(t: Target) -> None:
    """A body of unknown length is read."""
    chunked = ("-H", "Transfer-Encoding: chunked", "-o", "/dev/null", "-w", "%{http_code}")
    assert curl(t, CHAT, *chunked, body=t.body(max_tokens=1)) == "200"


@check(CURL, gateway_only=True)
def curl_head(t: Target) -> None:
    """HEAD of /health has a head and no body."""
    assert curl(t, "/health", "-I").startswith("HTTP/1.1 200")


@check(CURL, gateway_only=True)
def curl_key_in_the_other_header(t: Target) -> None:
    """x-api-key is taken like a bearer token."""
    code = curl(
        t,
        CHAT,
        *("-H", f"x-api-key: {t.api_key}", "-o", "/dev/null", "-w", "%{http_code}"),
        body=t.body(max_tokens=1),
    )
    assert code == "200"


class Line:
    """One TCP connection to the server."""

    def __init__(self, t: Target, sock: socket.socket) -> None:
        self.t = t
        self.sock = sock
        self.left = b""

    def send(
        self,
        body: dict[str, Any],
        *,
        path: str = "",
        version: str = "1.1",
        parts: int = 1,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """One chat request, or one to `path`; in `parts` writes."""
        data = json.dumps(body).encode()
        rows = [
            f"POST {path or CHAT} HTTP/{version}",
            *(f"{name}: {value}" for name, value in headers.items()),
            f"Host: {urlsplit(self.t.base_url).netloc}",
            f"Authorization: Bearer {self.t.api_key}",
            "Content-Type: application/json",
            f"Content-Length: {len(data)}",
        ]
        whole = "\r\n".join(rows).encode() + b"\r\n\r\n" + data
        size = -(-len(whole) // parts)
        for start in range(0, len(whole), size):
            self.sock.sendall(whole[start : start + size])

    def _more(self) -> None:
        data = self.sock.recv(65_536)
        assert data, f"closed after {self.left[-200:]!r}"
        self.left += data

    def is_refused(self) -> bool:
        """Whether an answer that is no success has begun to come."""
        if select.select([self.sock], [], [], 0)[0]:
            self._more()
        return bool(self.left) and not self.left.startswith(b"HTTP/1.1 200")

    def head(self) -> dict[str, str]:
        """Status and headers of the next answer."""
        while b"\r\n\r\n" not in self.left:
            self._more()
        head, _, self.left = self.left.partition(b"\r\n\r\n")
        first, *rows = head.decode().split("\r\n")
        found = {name.lower(): value for name, _, value in (row.partition(": ") for row in rows)}
        return {"status": first.split()[1], **found}

    def read(self, size: int) -> bytes:
        """So many bytes."""
        while len(self.left) < size:
            self._more()
        data, self.left = self.left[:size], self.left[size:]
        return data

    def chunks(self) -> bytes:
        """A chunked body to its end."""
        whole = b""
        while True:
            while b"\r\n" not in self.left:
                self._more()
            size, _, self.left = self.left.partition(b"\r\n")
            data = self.read(int(size, 16) + 2)
            if data == b"\r\n":
                return whole
            whole += data[:-2]

    def rest(self) -> bytes:
        """Everything until the server closes."""
        while data := self.sock.recv(65_536):
            self.left += data
        return self.left


@contextmanager
def line(t: Target) -> Iterator[Line]:
    """A connection of its own."""
    place = urlsplit(t.base_url)
    with socket.create_connection((place.hostname, place.port or 80), timeout=PATIENCE) as sock:
        yield Line(t, sock)


@check(SOCKET)
def http10_stream_is_not_chunked(t: Target) -> None:
    """A stream to an HTTP/1.0 client ends with the connection and is not chunked."""
    with line(t) as one:
        one.send(t.body(stream=True), version="1.0")
        head = one.head()
        body = one.rest()
    assert head["status"] == "200"
    assert "transfer-encoding" not in head
    assert body.startswith(b"data: {")
    assert body.endswith(b"data: [DONE]\n\n")


@check(SOCKET)
def connection_is_used_again(t: Target) -> None:
    """After a plain answer the same connection serves the next request."""
    with line(t) as one:
        for _ in range(2):
            one.send(t.body(max_tokens=1))
            head = one.head()
            assert head["status"] == "200"
            if "content-length" in head:
                one.read(int(head["content-length"]))
            else:
                one.chunks()


@check(SOCKET)
def connection_is_used_again_after_a_stream(t: Target) -> None:
    """So it does after a stream."""
    with line(t) as one:
        for _ in range(2):
            one.send(t.body(max_tokens=1, stream=True))
            assert one.head()["status"] == "200"
            assert one.chunks().endswith(b"data: [DONE]\n\n")


@check(SOCKET)
def request_in_small_pieces(t: Target) -> None:
    """A request that comes in forty writes is one request."""
    with line(t) as one:
        one.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.send(t.body(max_tokens=1), parts=40)
        assert one.head()["status"] == "200"


@check(SOCKET)
def stream_is_read_slowly(t: Target) -> Any:
    """A client that reads byte by byte gets the whole stream."""
    with line(t) as one:
        one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.send(t.body(stream=True, max_tokens=32, ignore_eos=True))
        one.head()
        for _ in range(200):
            one.left += one.sock.recv(1)
        body = one.chunks()
    assert body.endswith(b"data: [DONE]\n\n")
    return body.count(b"\n\n")


@check(SOCKET, gateway_only=True)
def empty_body_too_large(t: Target) -> None:
    """A length beyond the limit is refused before the body is sent, in words."""
    with line(t) as one:
        one.sock.sendall(
            f"POST {CHAT} HTTP/1.1\r\nHost: {urlsplit(t.base_url).netloc}\r\n"
            f"Authorization: Bearer {t.api_key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {1 << 40}\r\n\r\n{{".encode()
        )
        head = one.head()
        error = json.loads(one.read(int(head["content-length"])))["error"]
    assert head["status"] == "413"
    assert error["message"]


@check(SOCKET)
def nonsense_is_not_answered_with_success(t: Target) -> None:
    """What is not HTTP is refused or hung up on, and harms nobody."""
    with line(t) as one:
        one.sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n")
        one.sock.shutdown(socket.SHUT_WR)
        said = one.rest()
    assert b" 200 " not in said.partition(b"\r\n")[0]
    assert t.chat(max_tokens=1)


@check(SOCKET)
def leaving_in_the_middle_of_a_request_does_no_harm(t: Target) -> None:
    """A client that goes before its body is complete is forgotten."""
    with line(t) as one:
        one.sock.sendall(
            f"POST {CHAT} HTTP/1.1\r\nHost: {urlsplit(t.base_url).netloc}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{".encode()
        )
    assert t.chat(max_tokens=1)
