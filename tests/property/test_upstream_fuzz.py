"""Whatever a worker sends, the HTTP/1.1 client answers with bytes or an error, alike at any split.

`SPECROUTE_FUZZ_SECONDS` bounds the run (default 3); a failure names its seed.
"""

from __future__ import annotations

import os
import random
import time

from tests.support.http11_driver import Result, drive, split

SECONDS = float(os.environ.get("SPECROUTE_FUZZ_SECONDS", "3"))
CORPUS = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}',
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"6\r\nabcdef\r\n1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nT: v\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n"
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 503 Unavailable\r\nConnection: close\r\n\r\nuntil the end",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nxyz",
)
PIECES = (
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"0\r\n\r\n", b"\r\n\r\n",
    b"Content-Length: 3\r\n", b"Content-Length: 18446744073709551616\r\n", b"content-length:\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"chunked, chunked",
    b"Connection: close\r\n", b"Upgrade: h2c\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 ",
    b"ffffffffffffffff\r\n", b"-1", b"+1", b"0x1", b"\xff", b"\xef\xbb\xbf", b"a" * 300,
)  # fmt: skip


def mutate(rng: random.Random, data: bytes) -> bytes:
    """One to four small changes, of the kinds that parsers have been confused by."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.randint(1, 12))
        kind = rng.randrange(6)
        if kind == 0:
            data = data[:at] + rng.choice(PIECES) + data[at:]
        elif kind == 1:
            data = data[:at] + data[end:]
        elif kind == 2:
            data = data[:at] + data[at:end] * 2 + data[end:]
        elif kind == 3:
            data = data[:at] + bytes((rng.randrange(256),)) + data[at + 1 :]
        elif kind == 4:
            data = data[:at] + rng.choice(CORPUS)
        else:
            data = data[:at]
    return data


def same(one: Result, other: Result) -> bool:
    keys = ("status", "headers", "body", "error")
    return all(getattr(one, key) == getattr(other, key) for key in keys)


def check(rng: random.Random) -> None:
    data = mutate(rng, rng.choice(CORPUS))
    method = rng.choice(("POST", "POST", "HEAD"))
    whole = drive(data, method=method)
    assert len(whole.body) <= len(data)
    assert whole.error in ("", "UpstreamFailed")
    cuts = [rng.randrange(len(data) + 1) for _ in range(rng.randint(1, 5))]
    parts = split(data, cuts)
    assert same(whole, drive(*parts, method=method)), (parts, method)
    single = [data[i : i + 1] for i in range(len(data))]
    assert same(whole, drive(*single, method=method)), (data, method)


def test_any_bytes_give_an_answer_or_an_error():
    end = time.monotonic() + SECONDS
    seed = first = random.SystemRandom().randrange(1 << 32)
    while time.monotonic() < end:
        try:
            check(random.Random(seed))
        except Exception as error:
            raise AssertionError(f"the case with seed {seed} fails") from error
        seed += 1
    assert seed > first
