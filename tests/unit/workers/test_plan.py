from __future__ import annotations

from dataclasses import replace

from workers.plan import difference, must_leave_for, resident_at_start
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


def test_only_what_changed_is_touched():
    a, b, c = spec("a"), spec("b"), spec("c")
    after = [replace(b, slots=2), replace(c, aliases=("gpt",), acceptance_floor=0.2), spec("d")]
    found = difference([a, b, c], after)
    assert found.gone == ("a",)
    assert [s.name for s in found.new] == ["d"]
    assert found.changed == (after[0],)
    assert found.adopted == (after[1],)
    assert not difference([a, b], [b, a])


def test_a_change_of_both_kinds_needs_another_process():
    other = replace(spec("a"), aliases=("x",), port=81)
    assert difference([spec("a")], [other]).changed == (other,)
