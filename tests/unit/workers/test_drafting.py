"""Drafts that vanish, drafts in vain, and when a worker is called well again."""

from __future__ import annotations

from workers.drafting import WINDOW_TOKENS, Counts, Drafting, DraftWatch

FLOOR = 0.1
NOTHING = Counts(0, 0, 0)


def watch(*windows):
    """After windows of (drafted, accepted), each of just enough tokens."""
    seen, at = DraftWatch(FLOOR).seen(NOTHING), NOTHING
    for drafted, accepted in windows:
        at = Counts(at.predicted + WINDOW_TOKENS, at.drafted + drafted, at.accepted + accepted)
        seen = seen.seen(at)
    return seen


def test_one_odd_window_is_no_fault_and_two_are():
    assert watch((0, 0)).degraded is None
    assert watch((0, 0), (0, 0)).degraded is Drafting.VANISHED
    assert watch((0, 0), (300, 200), (0, 0)).degraded is None
    assert watch((0, 0), (0, 0)).reason == f"nothing drafted in the last {WINDOW_TOKENS} tokens"


def test_acceptance_under_the_floor_is_in_vain():
    seen = watch((1000, 99), (1000, 99))
    assert seen.degraded is Drafting.IN_VAIN
    assert seen.reason == "99 of 1000 drafted tokens accepted in service (floor 10%)"
    assert watch((1000, 100), (1000, 100)).degraded is None


def test_few_drafts_tell_no_rate():
    assert watch((20, 0), (20, 0)).degraded is None


def test_it_recovers_only_clearly_above_the_floor():
    assert not watch((1000, 20), (1000, 20), (1000, 120)).recovers()
    assert watch((1000, 20), (1000, 20), (1000, 160)).recovers()
    assert not watch((0, 0), (0, 0)).recovers()
    assert not watch().recovers()


def test_a_window_is_judged_when_it_is_full_and_begins_again_after_a_restart():
    seen = DraftWatch(FLOOR).seen(Counts(1000, 10, 5)).seen(Counts(1000 + WINDOW_TOKENS - 1, 10, 5))
    assert seen.last is None
    assert seen.seen(None) == seen
    again = seen.seen(Counts(3, 0, 0))
    assert again.begun == Counts(3, 0, 0)
    assert again.last is None
