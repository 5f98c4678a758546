from __future__ import annotations

from random import Random

import pytest

from router.telemetry import Knowledge
from router.telemetry.collapse import Collapse, CollapseDetector, Sight
from router.telemetry.speeds import ACCEPTED_LENGTH
from tests.fakes.outcomes import outcome
from workers.timings import Timings

DIMENSIONS = {
    "class": ("prose", "structured"),
    "language": ("en", "ru"),
    "occupancy bucket": ("0", "1"),
    "worker": ("a", "b"),
}


def sights(count: int, rng: Random, shift: float = 0.0, **where: str):
    """Answers of random properties; those with all of `where` are off by `shift`."""
    for number in range(count):
        properties = {name: rng.choice(values) for name, values in DIMENSIONS.items()}
        off = shift if where and where.items() <= properties.items() else 0.0
        yield Sight("m", float(number), properties, {ACCEPTED_LENGTH: off + rng.gauss(0.0, 0.15)})


def collapses(detector: CollapseDetector, rows) -> list[Collapse]:
    return [found for row in rows for found in detector.observe(row)]


@pytest.mark.parametrize(
    ("dimension", "value"), [("language", "ru"), ("occupancy bucket", "1"), ("worker", "b")]
)
def test_the_property_that_explains_the_change_is_named(dimension, value):
    rng, detector = Random(3), CollapseDetector()
    assert collapses(detector, sights(200, rng)) == []
    found = collapses(detector, sights(80, rng, -0.6, **{dimension: value}))
    assert (found[0].dimension, found[0].value) == (dimension, value)
    assert found[0].factor < 0.8
    assert f"where {dimension} is {value}" in found[0].sentence()


def test_noise_is_no_news():
    assert collapses(CollapseDetector(), sights(5000, Random(9))) == []


def test_an_improvement_is_news_too():
    rng, detector = Random(4), CollapseDetector()
    found = collapses(detector, sights(100, rng, 0.6, worker="a"))
    assert found[0].value == "a"
    assert found[0].factor > 1.2


def test_what_is_watched_is_bounded():
    detector = CollapseDetector()
    for number in range(6000):
        detector.observe(Sight("m", 0.0, {"kind": str(number)}, {ACCEPTED_LENGTH: 0.0}))
    assert len(detector._sums) <= 4097


def answer(length: float) -> Timings:
    accepted = round(200 * (1 - 1 / length))
    return Timings(
        predicted_n=201, predicted_ms=200 / length * 40.0, draft_n=300, draft_n_accepted=accepted
    )


def test_knowledge_reports_a_collapse_of_acceptance_by_worker():
    known = Knowledge()
    workers = (("a", 3.0), ("b", 3.0))
    for number in range(60):
        for worker, length in workers:
            known.observe(outcome(worker=worker, timings=answer(length), at=1e9 + number))
    assert not known.collapses
    for number in range(12):
        known.observe(outcome(worker="a", timings=answer(3.0), at=1e9 + 100 + number))
        known.observe(outcome(worker="b", timings=answer(1.2), at=1e9 + 100 + number))
    first = known.collapses[0]
    assert (first.metric, first.dimension, first.value) == (ACCEPTED_LENGTH, "worker", "b")
    assert first.factor < 0.8
