from __future__ import annotations

import pytest

from workers.spec import WorkerSpec
from workers.state import IllegalTransition, WorkerEvent, WorkerState
from workers.status import Status


class FrozenClock:
    def __init__(self):
        self.now = 5.0

    def wall(self):
        return self.now

    def monotonic(self):
        return self.now


@pytest.fixture
def published():
    return []


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def status(published, clock):
    spec = WorkerSpec("w", "m", "mtp-n3", slots=2, context=512, reasoning="on", kv="unified")
    return Status(spec, clock, published.append, host="h", features=("tools",))


def test_the_first_record_is_what_was_asked_for(status, published):
    record = status.record
    assert (record.state, record.effective_mode, record.slots) == (
        WorkerState.STOPPED,
        "mtp-n3",
        2,
    )
    assert (record.host, record.features, record.default_thinking, record.unified_kv) == (
        "h",
        ("tools",),
        True,
        True,
    )
    assert published == []


@pytest.mark.parametrize(
    ("url", "transport"), [("https://box:1", "httpx"), ("http://box:1", "http11"), (None, "http11")]
)
def test_the_address_decides_how_gateways_reach_it(url, transport, clock):
    spec = WorkerSpec("w", "m", "ar", url=url)
    status = Status(spec, clock, lambda record: None, host="h", features=())
    assert status.record.transport == transport


def test_several_moves_are_published_as_one(status, published, clock):
    clock.now = 9.0
    status.advance(WorkerEvent.SPAWN, WorkerEvent.LOADED, WorkerEvent.PROBE_FAILED, reason="why")
    assert [r.state for r in published] == [WorkerState.DEGRADED]
    assert (published[0].reason, published[0].heartbeat_at) == ("why", 9.0)


def test_no_change_is_not_published(status, published):
    status.update(reason="")
    status.update(progress=0.5)
    status.update(progress=0.5)
    assert [r.progress for r in published] == [0.5]


def test_an_illegal_move_changes_nothing(status, published):
    with pytest.raises(IllegalTransition):
        status.advance(WorkerEvent.SPAWN, WorkerEvent.UNDRAIN)
    assert status.state is WorkerState.STOPPED
    assert published == []
