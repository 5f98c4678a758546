from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from workers.arms import Arm
from workers.record import WorkerRecord
from workers.state import WorkerState

RECORD = WorkerRecord(
    name="w",
    model="m",
    mode="ar",
    effective_mode="ar",
    url="http://h:1",
    state=WorkerState.READY,
    slots=2,
    context=4096,
    spec_hash="0",
    heartbeat_at=1.5,
    argv=("a", "b"),
    features=("tools",),
    arms=(Arm("ar", 0), Arm("mtp-n2-p75", 2, 0.75)),
)


def test_bytes_and_back():
    assert WorkerRecord.loads(RECORD.dumps()) == RECORD


def test_fields_of_a_newer_version_are_ignored():
    newer = orjson.loads(RECORD.dumps()) | {"colour": "blue"}
    assert WorkerRecord.loads(orjson.dumps(newer)) == RECORD


def test_a_record_of_an_older_version_has_no_arms():
    older = orjson.loads(RECORD.dumps())
    del older["arms"]
    assert WorkerRecord.loads(orjson.dumps(older)).arms == ()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"state": "asleep"}', b"\xff"])
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match=r"."):
        WorkerRecord.loads(data)


def test_speed_is_learned_apart_by_draft_length_where_the_mode_leaves_it_open():
    drafting = replace(RECORD, mode="mtp", effective_mode="mtp", draft_max=5)
    assert RECORD.speed_key == "0"
    assert drafting.speed_key == "0~n5"
    assert replace(drafting, effective_mode="ar").speed_key == "0"
