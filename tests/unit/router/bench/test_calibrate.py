"""Which modes files allow, what fits into the time, and a config that `check` accepts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from router.bench.advise import advise, read_measurements, recommended
from router.bench.calibrate import (
    Wish,
    candidates,
    config_text,
    equal_traffic,
    modes_for,
    within,
)
from router.bench.measured import parse_report
from workers.config import read_config
from workers.gguf_header import Header
from workers.machine import Machine
from workers.placement import GPU
from workers.tiny.trio import SHIPPED_DRAFT, SHIPPED_TARGET

BARE = Machine("Linux", "some processor", 2, 8.0, ())


def header(architecture, **metadata):
    named = {f"{architecture}.{k}": v for k, v in metadata.items()}
    return Header({"general.architecture": architecture, **named}, 1000)


@pytest.mark.parametrize(
    ("target", "draft", "modes"),
    [
        (header("llama"), None, ("ar", "ngram-mod")),
        (
            header("qwen35", nextn_predict_layers=1),
            header("dflash", selector_rank=64),
            ("ar", "dflash2-margin", "dflash2", "mtp-n3", "mtp-margin", "ngram-mod"),
        ),
        (header("llama"), header("dflash"), ("ar", "dflash-margin", "dflash", "ngram-mod")),
        (header("llama"), header("eagle3"), ("ar", "eagle3", "ngram-mod")),
        (header("llama"), header("llama"), ("ar", "draft", "ngram-mod")),
    ],
)
def test_files_tell_which_modes_there_are(target, draft, modes):
    assert modes_for(target, draft) == modes


def wish(**changes):
    values = {"context": 1024, "slots": 1}
    return Wish("m", SHIPPED_TARGET, SHIPPED_DRAFT, **(values | changes))


MODES = ("ar", "dflash2-margin", "dflash2", "mtp-n3", "mtp-margin", "ngram-mod")


def test_candidates_are_every_mode_and_then_other_draft_lengths():
    found = candidates(wish(), MODES, BARE)
    assert tuple(s.label for s in found[: len(MODES)]) == MODES
    rest = {s.label for s in found[len(MODES) :]}
    assert rest == {
        *(f"mtp-n3 n_max={n}" for n in (1, 2, 5)),
        *(f"dflash2 n_max={n}" for n in (3, 5)),
    }
    drafts = {s.spec.mode: s.spec.draft for s in found}
    assert drafts["dflash2"] == SHIPPED_DRAFT
    assert drafts["mtp-n3"] is None


def test_the_grid_fits_into_the_time():
    found = candidates(wish(), MODES, BARE)
    short = within(found, 30.0, 1.0)
    assert (len(short.settings), short.per_class) == (2, 3)
    assert len(within(found, 3600.0, 1.0).settings) == len(found)
    assert within(found, 1e6, 1.0).per_class == 8


def test_the_config_of_a_plan_is_one_that_check_accepts(tmp_path):
    machine = Machine("Linux", "p", 2, 64.0, (GPU(0, "A", 8000, 8000), GPU(1, "B", 8000, 8000)))
    settings = candidates(wish(threads=1, reasoning="off"), MODES, machine)
    speeds = {"ar": 100.0, "mtp-n3": 130.0, "mtp-n3 n_max=5": 180.0}
    rows = [
        {
            "setting": name,
            "class": kind,
            "decode_tps": {"mean": tps if kind == name[-1] or name == "ar" else tps / 2},
            "prompt_tokens": 20,
            "tokens": 100.0,
            "ttft_ms": {"p50": 1.0},
        }
        for name, tps in speeds.items()
        for kind in ("3", "5")
    ]
    for row in rows:
        row["class"] = {"3": "prose", "5": "structured"}[row["class"]]
    traffic = equal_traffic({"rows": rows})
    assert {s.workload_class for s in traffic} == {"prose", "structured"}
    cells = read_measurements([parse_report({"rows": rows})], 1)
    plan = recommended(advise(traffic, cells, most=3, memory_gb=None, rng=random.Random(1)))
    path = tmp_path / "c.yaml"
    path.write_text(config_text(wish(), plan, settings, machine, ["said"]))
    config, problems = read_config(path, {})
    assert problems == ()
    assert config is not None
    workers = config.worker_specs()
    assert [w.mode for w in workers] == [name.partition(" ")[0] for name in plan.settings]
    assert len({w.name for w in workers}) == len(workers)
    assert [w.gpu.devices for w in workers] == [(i % 2,) for i in range(len(workers))]
    assert "# said" in path.read_text()
    assert workers[0].target == Path(SHIPPED_TARGET)
