from __future__ import annotations

from pathlib import Path

import pytest

from workers.modes import MODES, p_min
from workers.spec import WorkerSpec


def spec(mode, **changes):
    return WorkerSpec(name="w", model="m", mode=mode, target=Path("t.gguf"), **changes)


def test_every_mode_of_the_contract_is_there_and_no_other():
    assert list(MODES) == [
        "ar",
        "mtp",
        "mtp-n3",
        "mtp-margin",
        "dflash",
        "dflash2",
        "dflash-margin",
        "dflash2-margin",
        "dspark",
        "eagle3",
        "draft",
        "ngram-mod",
        "ngram-map-k",
        "ngram-map-k4v",
        "ngram-simple",
        "ngram-cache",
        "luce-chain",
        "luce-ddtree",
    ]


@pytest.mark.parametrize(
    ("mode", "changes", "stock", "patched"),
    [
        ("ar", {}, None, None),
        ("mtp-n3", {}, None, None),
        ("dflash2", {}, None, None),
        ("dflash2-margin", {}, 0.74, 0.35),
        ("dflash-margin", {}, 0.74, 0.35),
        ("dflash2-margin", {"margin": 3.0}, 0.95, 1.0),
        ("mtp-margin", {}, 0.65, 0.3),
        ("mtp-margin", {"gap": 0.5}, 0.75, 0.5),
        ("mtp-n3", {"p_min": 0.123}, 0.123, 0.123),
        ("dflash2-margin", {"p_min": 0.0, "margin": 2.0}, 0.0, 0.0),
    ],
)
def test_the_cut_in_both_dialects(mode, changes, stock, patched):
    assert p_min(spec(mode, **changes), "stock") == stock
    assert p_min(spec(mode, **changes), "patched") == patched


def test_what_modes_need_and_are():
    needing = {name for name, mode in MODES.items() if mode.needs_draft}
    assert needing == {
        *("dflash", "dflash2", "dflash-margin", "dflash2-margin"),
        *("dspark", "eagle3", "draft", "luce-chain", "luce-ddtree"),
    }
    assert [name for name, mode in MODES.items() if not mode.speculative] == ["ar"]
    assert {name for name, mode in MODES.items() if mode.engine == "luce"} == {
        "luce-chain",
        "luce-ddtree",
    }
    assert all(mode.by_lookup == name.startswith("ngram") for name, mode in MODES.items())
