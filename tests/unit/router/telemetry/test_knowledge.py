from __future__ import annotations

import math
from dataclasses import replace

import orjson
import pytest

from router.core import Status
from router.telemetry import Knowledge
from router.telemetry.knowledge import text_of
from router.telemetry.levels import Arm
from router.telemetry.store.base import CellName
from tests.fakes.outcomes import outcome

START = 1_700_000_000.0


def weights(knowledge: Knowledge) -> dict[str, float]:
    return {
        name: sum(cell.moments.w for cell in table.observed())
        for name, table in knowledge.tables.items()
    }


def test_one_answer_teaches_every_table():
    knowledge = Knowledge()
    knowledge.observe(outcome(prompt_chars=1200, host="box", beside=1.0))
    assert all(weight > 0 for name, weight in weights(knowledge).items() if name != "p")


@pytest.mark.parametrize("status", [Status.UPSTREAM_ERROR, Status.SHED, Status.TIMEOUT])
def test_failures_teach_nothing(status):
    knowledge = Knowledge()
    knowledge.observe(outcome(status=status))
    assert not any(weights(knowledge).values())


def test_an_answer_left_halfway_teaches_speed_but_not_length():
    knowledge = Knowledge()
    knowledge.observe(outcome(status=Status.CLIENT_GONE))
    found = weights(knowledge)
    assert found["v"] > 0
    assert found["n"] == 0


def test_a_new_epoch_with_traffic_fades_and_a_quiet_time_does_not():
    knowledge = Knowledge(half_life_s=300.0)
    for number in range(400):
        knowledge.observe(outcome(at=START + number / 10, tokens=400))
    before = weights(knowledge)["v"]
    knowledge.observe(outcome(at=START + 70 * 3600.0, tokens=400))
    assert weights(knowledge)["v"] == pytest.approx(before / 2, rel=0.05)
    knowledge.tick(START)
    assert weights(knowledge)["v"] == pytest.approx(before / 2, rel=0.05)


def test_every_cell_is_found_again_by_its_name():
    knowledge, other = Knowledge(), Knowledge()
    knowledge.observe(outcome(prompt_chars=1200, host="box", beside=1.0))
    names = {
        CellName(name, orjson.dumps(cell.key, default=tuple).decode()): cell.moments
        for name, table in knowledge.tables.items()
        for cell in table.observed()
    }
    other.adopt(names, {})
    assert weights(other) == weights(knowledge)
    knowledge.settle()
    done = outcome()
    what = text_of(done.classification, 0, False), 0
    arm = Arm(done.model, done.worker_key, done.mode)
    assert other.speeds.predict(arm, *what) == pytest.approx(knowledge.speeds.predict(arm, *what))
    keys = {name: set(table.export()) for name, table in knowledge.tables.items()}
    assert {name: set(table.export()) for name, table in other.tables.items()} == keys


@pytest.mark.parametrize(
    "name", [CellName("v", "[1]"), CellName("zz", "[]"), CellName("n", "not json")]
)
def test_names_of_another_version_are_passed_over(name):
    assert Knowledge().cell_named(name) is None


def test_an_alarm_names_what_changed():
    knowledge = Knowledge()
    for number in range(60):
        knowledge.observe(outcome(at=START + number, tokens_per_second=40.0))
    for number in range(8):
        knowledge.observe(outcome(at=START + 100 + number, tokens_per_second=12.0))
    assert knowledge.alarms
    assert knowledge.alarms[0].worker_key == "hash-prose"
    assert knowledge.alarms[0].workload_class == "prose"


def test_prompt_tokens_are_estimated_for_the_dispatcher():
    knowledge = Knowledge()
    assert 200 < knowledge.prompt_tokens("m", "en", 1000) < 300


def test_odd_outcomes_are_passed_over():
    knowledge = Knowledge()
    knowledge.observe(replace(outcome(), classification=None))
    assert not any(weights(knowledge).values())


def test_an_answer_is_compared_with_what_is_usual():
    knowledge = Knowledge()
    for number in range(40):
        knowledge.observe(outcome(at=START + number))
    assert knowledge.accepted(outcome()) == pytest.approx(1.0, rel=0.05)
    assert knowledge.accepted(outcome(classification=None)) is None
    assert knowledge.accepted(outcome(mode="ar")) is None


def beside_others(knowledge: Knowledge, beside: float, speed: float, count: int = 30) -> None:
    for number in range(count):
        knowledge.observe(
            outcome(
                at=START + number,
                tokens=400,
                tokens_per_second=speed,
                host="box",
                beside=beside,
            )
        )


def test_what_neighbours_slow_is_not_taken_for_the_workers_own_speed():
    knowledge = Knowledge()
    beside_others(knowledge, 0.0, 80.0)
    before = knowledge.speeds.predict(*_of(outcome()))
    beside_others(knowledge, 3.0, 40.0)
    knowledge.settle()
    assert knowledge.surroundings.slowing("box", "tiny", 3.0).times == pytest.approx(2.0, rel=0.1)
    after = knowledge.speeds.predict(*_of(outcome()))
    assert after.ln_v == pytest.approx(before.ln_v, abs=0.05)


def test_a_worker_never_seen_alone_is_known_with_its_neighbours():
    knowledge = Knowledge()
    beside_others(knowledge, 3.0, 40.0, count=100)
    knowledge.settle()
    alone = knowledge.speeds.predict(*_of(outcome())).ln_v
    beside = knowledge.surroundings.slowing("box", "tiny", 3.0).times
    assert math.exp(alone) / beside == pytest.approx(40.0, rel=0.1)


def test_an_answer_that_others_joined_tells_of_the_load_it_had():
    knowledge = Knowledge()
    for number in range(30):
        at = START + number
        knowledge.observe(outcome(at=at, tokens=400, tokens_per_second=80.0, batch=1.0))
        joined = outcome(at=at, tokens=400, tokens_per_second=40.0, occupancy=1, batch=1.8)
        knowledge.observe(joined)
    arm, text, _ = _of(outcome())
    alone, shared = (knowledge.speeds.predict(arm, text, bucket).ln_v for bucket in (0, 1))
    assert math.exp(alone) == pytest.approx(80.0, rel=0.05)
    assert math.exp(shared) == pytest.approx(40.0, rel=0.05)


def _of(finished):
    arm = Arm(finished.model, finished.worker_key, finished.mode)
    return arm, text_of(finished.classification, 0, has_image=False), 0
