from __future__ import annotations

from workers.plan import must_leave_for, resident_at_start
from workers.spec import WorkerSpec


def spec(name, group=None, priority=0):
    return WorkerSpec(name, "m", "ar", exclusive_group=group, priority=priority)


FLEET = [spec("a"), spec("b", "gpu"), spec("c", "gpu", 1), spec("d", "gpu", 1), spec("e", "x")]


def test_one_of_each_group_starts_the_first_of_the_highest_priority():
    assert resident_at_start(FLEET) == {"a", "c", "e"}
    assert resident_at_start([]) == frozenset()


def test_only_members_of_the_same_group_leave():
    running = ["a", "c", "e"]
    assert must_leave_for("b", FLEET, running) == ("c",)
    assert must_leave_for("c", FLEET, running) == ()
    assert must_leave_for("a", FLEET, running) == ()
    assert must_leave_for("unknown", FLEET, running) == ()
