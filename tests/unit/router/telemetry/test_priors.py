from __future__ import annotations

import pytest

from router.telemetry.levels import Arm, Text
from router.telemetry.priors import (
    draft_length,
    family,
    relative_speed,
    stated_speed,
    workload_class,
)
from router.telemetry.speeds import SpeedModel


@pytest.mark.parametrize(
    ("mode", "row"),
    [
        ("ar", "ar"),
        ("mtp-n3", "mtp"),
        ("mtp-margin", "mtp"),
        ("dflash2-margin", "dflash-margin"),
        ("dflash2", "dflash"),
        ("ngram-map-k4v", "ngram"),
        ("luce-ddtree", "luce"),
        ("luce_chain", "luce"),
        ("something-new", "mtp"),
    ],
)
def test_a_mode_belongs_to_a_family(mode, row):
    assert family(mode) == row


def test_a_kind_stands_for_its_class():
    assert workload_class("json") == "structured"
    assert workload_class("prose") == "prose"
    assert workload_class("c4") == "mixed"


def test_the_table():
    assert relative_speed("ar", "prose") == 1.0
    assert relative_speed("mtp-n3", "structured") == 1.5
    assert relative_speed("dflash2-margin", "reasoning") == 1.3
    assert relative_speed("dflash2", "prose") == 1.2
    assert 1.2 < relative_speed("mtp-n3", "c4") < 1.5


def test_code_wants_longer_drafts_than_prose():
    code = [relative_speed(f"mtp-n{n}", "code") for n in range(1, 8)]
    prose = [relative_speed(f"mtp-n{n}", "essay") for n in range(1, 8)]
    assert code.index(max(code)) + 1 == 5
    assert prose.index(max(prose)) + 1 == 2
    assert relative_speed("mtp-n3", "code") == relative_speed("mtp", "code") == 1.5
    assert relative_speed("mtp-n16", "code") == relative_speed("mtp-n7", "code")
    assert prose[3] < relative_speed("mtp-n4", "anything") < code[3]


def test_margin_drafters_lose_on_long_documents_and_under_load():
    assert relative_speed("dflash2-margin", "prose", context=1) == 0.8
    assert relative_speed("dflash2-margin", "structured", context=1) == 1.7
    assert relative_speed("dflash2-margin", "structured", context=3) == 0.9
    assert relative_speed("dflash2-margin", "structured", occupancy=1) < 1.7
    assert relative_speed("dflash2", "prose", context=1, occupancy=1) == 0.3
    assert relative_speed("dflash2", "prose", context=1) == 1.2
    assert relative_speed("mtp-n3", "prose", context=3, occupancy=3) == 1.2


def test_what_the_operator_stated_comes_before_the_table():
    stated = {"mtp-n3": {"structured": 3.0}}
    assert stated_speed(stated, "mtp-n3", "structured") == 3.0
    assert stated_speed(stated, "mtp-n3", "code") == 3.0  # a kind of that class
    assert stated_speed(stated, "mtp-n3", "prose") is None
    assert stated_speed(stated, "ar", "structured") is None
    arms = [Arm("m", mode, mode) for mode in ("mtp-n3", "dflash2-margin")]
    told, untold = SpeedModel(stated=stated), SpeedModel()
    mtp, other = (told.predict(arm, Text("structured"), 0).ln_v for arm in arms)
    assert mtp > other
    mtp, other = (untold.predict(arm, Text("structured"), 0).ln_v for arm in arms)
    assert mtp < other


def test_a_worker_tells_its_draft_length_where_its_mode_does_not():
    own = relative_speed("mtp", "essay", key="0123~n6")
    assert own == relative_speed("mtp-n6", "essay") < relative_speed("mtp", "essay", key="0123")
    assert draft_length("mtp", "0123~n6") == 6
    assert draft_length("mtp-n2") == draft_length("mtp-n2-p60") == 2
    assert draft_length("mtp-margin", "0123~n6") is None
    assert draft_length("dflash2-n3") is None
