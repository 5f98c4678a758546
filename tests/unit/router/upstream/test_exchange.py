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


async def _pumping(exchange: HTTP11Response, take) -> asyncio.Task[bytes]:
    task = asyncio.ensure_future(exchange.pump(take))
    await asyncio.sleep(0)
    return task


async def test_a_pump_hands_over_at_once_and_keeps_what_came_with_the_end(line):
    exchange, got = begun(line), []
    exchange.push(b"before")
    task = await _pumping(exchange, lambda chunk: got.append(chunk) or True)
    exchange.push(b"now")
    assert got == [b"before", b"now"]
    exchange.push(b"last", is_last=True)
    exchange.finish()
    assert await task == b"last"
    assert got == [b"before", b"now"]
    assert exchange.is_over


async def test_what_had_come_whole_is_not_pumped_at_all(line):
    exchange, got = begun(line), []
    exchange.push(b"a")
    exchange.push(b"b", is_last=True)
    exchange.finish()
    assert await exchange.pump(lambda chunk: got.append(chunk) or True) == b"b"
    assert got == [b"a"]


async def test_a_full_taker_stops_the_worker_and_is_not_the_workers_lateness(line):
    exchange = begun(line)
    task = await _pumping(exchange, lambda chunk: False)
    assert exchange.is_awaited
    exchange.push(b"x")
    assert line.calls == ["pause"]
    assert not exchange.is_awaited
    exchange.resume()
    assert line.calls == ["pause", "resume"]
    assert exchange.is_awaited
    exchange.finish()
    assert await task == b""


async def test_a_worker_that_breaks_off_is_told_after_its_bytes(line):
    exchange, got = begun(line), []
    task = await _pumping(exchange, lambda chunk: got.append(chunk) or True)
    exchange.push(b"x")
    exchange.finish(UpstreamFailed("broken"))
    with pytest.raises(UpstreamFailed, match="broken"):
        await task
    assert got == [b"x"]


async def test_a_takers_own_fault_comes_back_to_it_and_ends_the_exchange(line):
    exchange = begun(line)

    def take(chunk: bytes) -> bool:
        raise ValueError("not like this")

    task = await _pumping(exchange, take)
    exchange.push(b"x")
    exchange.finish()  # as the connection may
    with pytest.raises(ValueError, match="not like this"):
        await task
    assert line.calls == ["abort"]


async def test_held_before_the_pump_it_stays_held(line):
    exchange = begun(line)
    exchange.hold()
    task = await _pumping(exchange, lambda chunk: True)
    assert line.paused
    exchange.resume()
    assert not line.paused
    exchange.finish()
    assert await task == b""
