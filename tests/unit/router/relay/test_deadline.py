"""The whole time of a request, and what is done when it is over."""

from __future__ import annotations

import asyncio

import pytest

from router.core import Status, UpstreamTimeout
from router.fleet import read_chain
from router.relay.deadline import Deadline, Deadlines
from router.relay.flight import Flight, Reading
from tests.fakes.gateway import HandClock, classified, request


@pytest.fixture
def outcomes():
    return []


@pytest.fixture
def flight(outcomes):
    ask = request()
    features, found = classified()
    reading = Reading(features, found, "print", read_chain(ask.payload), "conv", 12.0)
    return Flight(ask, reading, HandClock(), lambda _flight, outcome: outcomes.append(outcome))


async def test_what_is_quick_enough_is_left_alone(flight):
    with Deadline(flight, Deadlines(30.0)):
        await asyncio.sleep(0)
    assert not flight.is_over


async def test_the_flight_knows_before_the_block_is_cancelled(flight, outcomes):
    async def carry() -> None:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            flight.finish()
            raise

    with pytest.raises(UpstreamTimeout) as refused, Deadline(flight, Deadlines(0.01)):
        await carry()
    assert refused.value.code == "timeout"
    assert [one.status for one in outcomes] == [Status.TIMEOUT]
    await asyncio.sleep(0)  # the task itself goes on


async def test_an_answer_that_is_complete_is_not_disturbed(flight):
    flight.succeed()
    flight.finish()
    with Deadline(flight, Deadlines(0.01)):
        await asyncio.sleep(0.05)


async def test_a_client_that_leaves_at_the_same_moment_comes_first(flight):
    deadline = Deadline(flight, Deadlines(60.0))

    async def block() -> None:
        with deadline:
            await asyncio.sleep(60.0)

    task = asyncio.ensure_future(block())
    await asyncio.sleep(0)
    deadline.end()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert flight.http_status == 504


async def test_each_ends_at_its_own_time_and_who_has_left_is_let_be(flight, outcomes):
    among, began = Deadlines(0.05), asyncio.get_running_loop().time()

    async def wait(seconds: float) -> float:
        await asyncio.sleep(seconds)
        with pytest.raises(UpstreamTimeout), Deadline(flight, among):
            await asyncio.sleep(60.0)
        return asyncio.get_running_loop().time() - began

    with Deadline(flight, among):
        pass
    ended = await asyncio.gather(wait(0.0), wait(0.03))
    assert 0.045 < ended[0] < 0.075 < ended[1]
    assert outcomes == []


def test_another_event_loop_has_a_timer_of_its_own(flight):
    among = Deadlines(0.02)

    async def leave_early() -> None:
        with Deadline(flight, among):
            await asyncio.sleep(0)

    async def stay() -> None:
        with pytest.raises(UpstreamTimeout), Deadline(flight, among):
            await asyncio.sleep(60.0)

    asyncio.run(leave_early())
    asyncio.run(stay())
