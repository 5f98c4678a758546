"""What answers turned out to be, and when that corrects the classifier."""

from __future__ import annotations

from dataclasses import replace

import orjson

from classifier.traffic import hashes_of, unpack
from router.core import Outcome, Status
from router.relay.produced import READ_PER_SECOND, Remembrance
from tests.fakes.gateway import HandClock, classified
from tests.support.gateway import DONE, delta

PROSE = "The river bent toward the sea, and the old man watched it go. " * 8
JSON = orjson.dumps({"name": "x", "values": list(range(40))}).decode()


def _outcome(text: str, **changes) -> Outcome:
    values = {
        "request_id": "r",
        "endpoint": "/v1/chat/completions",
        "model": "tiny",
        "status": Status.OK,
        "wall_time": 1_700_001_000.0,
        "fingerprint": "app",
        "conversation": "conv",
        "answer_sample": delta(text) + DONE,
    }
    return Outcome(**(values | changes))


def _found():
    return replace(classified("Tell me.")[1], source="model", thinking=False)


def test_an_application_of_one_mind_is_believed():
    memory = Remembrance(HandClock())
    found = _found()
    assert memory.recall(found, "app", "conv") is found
    for _ in range(10):
        memory.observe(_outcome(JSON))
    recalled = memory.recall(found, "app", "new")
    assert recalled.workload_class == "structured"
    assert recalled.source == "memory"
    assert memory.recall(found, "another app", "new") == found


def test_what_waits_is_taken_once_and_what_is_heard_counts():
    one, two = Remembrance(HandClock()), Remembrance(HandClock())
    features = classified("Tell me.")[0]
    one.observe(_outcome(JSON, features=features))
    (sample,) = one.take_samples()
    (example,) = unpack([sample])
    assert (example.hashes, example.kind) == (hashes_of(features), "json")
    two.hear(one.take_answers())
    assert two.memory.evidence("app", 1_700_001_000.0).by_kind == {"json": 1.0}
    assert one.take_answers() == one.take_samples() == []
    assert two.take_answers() == []  # what was heard is not told again


def test_a_busy_second_is_only_sampled():
    memory = Remembrance(HandClock())
    for number in range(100):
        memory.observe(_outcome(JSON, fingerprint=str(number), conversation=""))
    assert len(memory.memory) == READ_PER_SECOND
    memory.observe(_outcome(JSON, fingerprint="next", wall_time=1_700_001_001.0))
    assert memory.memory.evidence("next", 1_700_001_001.0).answers > 0


def test_only_whole_good_answers_are_remembered():
    memory = Remembrance(HandClock())
    memory.observe(_outcome(JSON, status=Status.CLIENT_GONE))
    memory.observe(_outcome(JSON, answer_sample=b""))
    memory.observe(_outcome(JSON, fingerprint="", conversation=""))
    assert len(memory.memory) == 0


def test_what_an_application_takes_of_drafts_is_recalled():
    memory = Remembrance(HandClock(), accepted=lambda _outcome: 1.4)
    for _ in range(10):
        memory.observe(_outcome(PROSE))
    assert 1.2 < memory.recall(_found(), "app", "new").accepted < 1.4
    assert memory.recall(_found(), "another app", "new").accepted == 1.0
