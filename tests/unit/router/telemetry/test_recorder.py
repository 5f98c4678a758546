from __future__ import annotations

import asyncio

from router.telemetry.recorder import Recorder, Sampled
from tests.fakes.outcomes import outcome
from tests.support.waiting import until


async def test_outcomes_reach_every_sink_in_order():
    first, second = [], []
    recorder = Recorder([first.append, second.append])
    sent = [outcome(at=float(number)) for number in range(100)]
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recorder.run())
        for one in sent:
            recorder.record(one)
        await until(lambda: recorder.recorded == 100)
        task.cancel()
    assert first == second == sent
    assert recorder.recorded == 100


def test_a_full_queue_sheds_and_counts():
    recorder = Recorder([], capacity=3)
    for _ in range(5):
        recorder.record(outcome())
    assert (recorder.waiting, recorder.shed) == (3, 2)


def test_a_broken_sink_does_not_keep_outcomes_from_the_others():
    def broken(_outcome):
        raise RuntimeError("no")

    got = []
    recorder = Recorder([broken, got.append])
    recorder.record(outcome())
    recorder.drain()
    assert len(got) == 1
    assert recorder.failures == 1


async def test_what_waits_at_the_end_is_still_handed_over():
    got = []
    recorder = Recorder([got.append])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recorder.run())
        await asyncio.sleep(0)
        recorder.record(outcome())
        task.cancel()
    assert len(got) == 1


def test_draining_can_be_done_in_parts():
    got = []
    recorder = Recorder([got.append])
    for _ in range(3):
        recorder.record(outcome())
    recorder.drain(2)
    assert (len(got), recorder.waiting) == (2, 1)


def test_who_learns_gets_a_part_of_each_busy_second_and_all_of_a_quiet_one():
    got = []
    sampled = Sampled(got.append, per_second=3)
    for at in (10.0, 10.1, 10.2, 10.3, 10.9, 11.0, 13.5):
        sampled(outcome(at=at))
    assert [one.wall_time for one in got] == [10.0, 10.1, 10.2, 11.0, 13.5]
