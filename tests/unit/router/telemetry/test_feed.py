from __future__ import annotations

from router.telemetry.feed import Feed
from tests.fakes.outcomes import outcome


async def test_every_viewer_gets_every_row():
    feed = Feed()
    with feed.watch() as one, feed.watch() as other:
        feed.record(outcome(at=1.0))
        assert (await one.next())["at"] == (await other.next())["at"] == 1.0


async def test_a_slow_viewer_loses_the_oldest():
    feed = Feed(backlog=2)
    with feed.watch() as viewer:
        for number in range(5):
            feed.record(outcome(at=float(number)))
        assert [(await viewer.next())["at"] for _ in range(2)] == [3.0, 4.0]
        assert viewer.dropped == 3


def test_a_viewer_that_left_gets_nothing_more():
    feed = Feed()
    with feed.watch() as viewer:
        pass
    feed.record(outcome())
    assert viewer.dropped == 0
    assert viewer._rows.empty()
