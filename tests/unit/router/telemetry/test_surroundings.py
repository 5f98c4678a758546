"""What neighbours on a host slow: by their number, for every worker there."""

from __future__ import annotations

import math

import pytest

from router.telemetry.surroundings import UNDISTURBED, Surroundings


def _taught(beside: float, off: float, count: int = 30, unsure: float = 0.0) -> Surroundings:
    around = Surroundings()
    for _ in range(count):
        around.observe("box", "m", beside, off=off, unsure=unsure, weight=1.0)
    return around


@pytest.mark.parametrize(("host", "beside"), [("box", 0.0), ("box", 0.4), ("", 5.0)])
def test_alone_or_on_an_unknown_host_nothing_slows(host, beside):
    around = _taught(beside, -0.7)
    assert around.slowing(host, "m", beside) is UNDISTURBED


def test_the_first_answers_beside_others_tell_by_how_much_they_slow():
    assert Surroundings().slowing("box", "m", 1.0).times == 1.0
    slowing = _taught(1.0, math.log(0.5), count=5).slowing("box", "m", 1.0)
    assert slowing.times == pytest.approx(2.0, rel=0.1)


def test_what_is_not_known_of_the_worker_says_little_of_its_neighbours():
    sure, unsure = _taught(1.0, -0.7, count=1), _taught(1.0, -0.7, count=1, unsure=2.0)
    assert unsure.slowing("box", "m", 1.0).times < 1.1 < sure.slowing("box", "m", 1.0).times


def test_more_neighbours_build_on_fewer_and_are_less_certain():
    around = _taught(1.0, -0.4)
    one, three = around.slowing("box", "m", 1.0), around.slowing("box", "m", 3.0)
    assert three.times == pytest.approx(one.times, rel=0.05)
    assert three.variance > 4 * one.variance


def test_another_model_of_the_host_knows_as_well_another_host_does_not():
    around = _taught(1.0, -0.4)
    assert around.slowing("box", "other", 1.0).times > 1.3
    assert around.slowing("elsewhere", "m", 1.0).times == 1.0


def test_a_request_reckons_with_as_much_company_as_the_last_few_had():
    around = _taught(3.0, -0.6)
    assert around.expected("box", "m", 0, 0) is UNDISTURBED
    for number in range(1500):
        around.met(f"pod-{number}", 3.0)  # hosts that are gone
    for _ in range(12):
        around.met("box", 3.0)
    assert around.expected("box", "m", 0, 0) == around.slowing("box", "m", 3.0)
    assert around.expected("box", "m", 0, 3) is UNDISTURBED  # they would share its batch
    assert around.expected("box", "m", 3, 3) == around.slowing("box", "m", 3.0)
    for _ in range(12):
        around.met("box", 0.0)
    assert around.expected("box", "m", 0, 0) is UNDISTURBED
