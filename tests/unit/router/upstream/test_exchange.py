from __future__ import annotations

import asyncio

import pytest

from router.core.errors import UpstreamFailed
from router.upstream.exchange import HTTP11Limits, HTTP11Response


class FakeLine:
    """A connection that only counts."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.deadline = 0.0
        self.paused = False
        self.calls: list[str] = []

    def abort(self) -> None:
        self.calls.append("abort")

    def pause(self) -> None:
        self.paused = True
        self.calls.append("pause")

    def resume(self, exchange: HTTP11Response) -> None:
        self.paused = False
        self.calls.append("resume")


@pytest.fixture
async def line() -> FakeLine:
    return FakeLine()


def begun(line: FakeLine) -> HTTP11Response:
    exchange = HTTP11Response(line, 7.0, HTTP11Limits(high_water=10, low_water=4))
    exchange.begin(200, [(b"a", b"b")])
    return exchange


async def test_bytes_come_before_the_error_that_followed_them(line):
    exchange = begun(line)
    exchange.push(b"ab")
    exchange.finish(UpstreamFailed("broken"))
    reader = exchange.chunks()
    assert await anext(reader) == b"ab"
    with pytest.raises(UpstreamFailed, match="broken"):
        await anext(reader)


async def test_a_reader_is_woken_by_bytes_and_by_the_end(line):
    exchange = begun(line)
    reader = exchange.chunks()
    line.loop.call_soon(exchange.push, b"ab")
    assert await anext(reader) == b"ab"
    assert line.deadline > line.loop.time()  # the wait for it was limited
    line.loop.call_soon(exchange.finish)
    with pytest.raises(StopAsyncIteration):
        await anext(reader)


async def test_reading_pauses_above_the_high_mark_and_resumes_at_the_low_one(line):
    exchange = begun(line)
    for piece in (b"12345", b"12345", b"1"):
        exchange.push(piece)
    assert line.calls == ["pause"]
    reader = exchange.chunks()
    await anext(reader)
    assert line.calls == ["pause"]
    await anext(reader)
    assert line.calls == ["pause", "resume"]


async def test_only_a_waiting_reader_makes_the_worker_late(line):
    exchange = HTTP11Response(line, 7.0, HTTP11Limits())
    assert exchange.is_awaited  # for the head
    exchange.begin(200, [])
    assert not exchange.is_awaited
    task = asyncio.ensure_future(anext(exchange.chunks()))
    await asyncio.sleep(0)
    assert exchange.is_awaited
    exchange.push(b"x")
    assert not exchange.is_awaited
    assert await task == b"x"


async def test_giving_up_breaks_the_connection_once(line):
    exchange = begun(line)
    await exchange.aclose()
    await exchange.aclose()
    assert line.calls == ["abort"]


async def test_a_finished_exchange_leaves_the_connection_alone(line):
    exchange = begun(line)
    exchange.finish()
    await exchange.aclose()
    assert line.calls == []


async def test_a_head_nobody_waits_for_any_more(line):
    exchange = HTTP11Response(line, 7.0, HTTP11Limits())
    exchange.head.cancel()
    exchange.begin(200, [])
    exchange.finish()
    assert exchange.status == 200
