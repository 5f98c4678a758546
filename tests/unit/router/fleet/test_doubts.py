"""A gateway tells of workers that fail what it sends, and not every second."""

from __future__ import annotations

from router.fleet import Fleet
from router.fleet.doubts import AGAIN_S, Doubts
from tests.fakes.gateway import HandClock, record
from workers.registry.base import RegistryUnavailable, Verb
from workers.state import WorkerState


class _Registry:
    """Keeps what was ordered; may be away."""

    def __init__(self) -> None:
        self.sent = []
        self.away = False

    async def send(self, command) -> int:
        if self.away:
            raise RegistryUnavailable("away")
        self.sent.append((command.verb, command.worker))
        return 1


def parts(**changes):
    clock, registry = HandClock(), _Registry()
    fleet = Fleet(clock)
    fleet.update([record(**changes)])
    return clock, fleet, registry, Doubts(fleet, registry, clock)


async def test_a_worker_whose_breaker_is_open_is_told_of_once_in_a_while():
    clock, fleet, registry, doubts = parts()
    await doubts.look()
    assert registry.sent == []
    fleet.failed("plain", certain=True)
    await doubts.look()
    await doubts.look()
    assert registry.sent == [(Verb.PROBE, "plain")]
    clock.advance(AGAIN_S)
    await doubts.look()
    assert len(registry.sent) == 2
    fleet.succeeded("plain")
    clock.advance(AGAIN_S)
    await doubts.look()
    assert len(registry.sent) == 2


async def test_a_worker_that_does_not_say_it_serves_is_no_doubt():
    _, fleet, registry, doubts = parts()
    fleet.failed("plain", certain=True)
    fleet.update([record(state=WorkerState.BACKOFF)])
    await doubts.look()
    assert registry.sent == []


async def test_what_could_not_be_told_is_told_later():
    _, fleet, registry, doubts = parts()
    fleet.failed("plain", certain=True)
    registry.away = True
    await doubts.look()
    registry.away = False
    await doubts.look()
    assert registry.sent == [(Verb.PROBE, "plain")]
