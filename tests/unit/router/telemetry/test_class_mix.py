"""Drift of the class mix."""

from __future__ import annotations

from router.telemetry.class_mix import LEAST, ClassMix


def test_says_nothing_before_it_has_seen_enough():
    mix = ClassMix()
    for _ in range(LEAST - 1):
        mix.add("prose")
    assert mix.drift is None


def test_a_steady_mix_does_not_drift_and_a_changed_one_does():
    mix = ClassMix()
    for number in range(3000):
        mix.add("prose" if number % 3 else "structured")
    assert mix.drift is not None
    assert mix.drift < 0.1
    for _ in range(200):
        mix.add("reasoning")
    assert mix.drift > 0.5
