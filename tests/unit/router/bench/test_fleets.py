"""A single mode gets as many workers, slots and threads as the routed fleet."""

from __future__ import annotations

import pytest
import yaml

from router.bench.fleets import equal_fleets

CONFIG = {
    "models": [{"name": "tiny", "target": "/m/t.gguf", "aliases": ["gpt"]}],
    "workers": [
        {"name": "a", "model": "tiny", "mode": "dflash2-margin", "draft": "/m/d.gguf", "slots": 2},
        {"name": "b", "model": "tiny", "mode": "mtp-n3", "slots": 2},
        {"name": "c", "model": "tiny", "mode": "ar", "slots": 2},
    ],
}


def test_fleets_are_equal_in_number_and_settings(tmp_path):
    source = tmp_path / "c.yaml"
    source.write_text(yaml.safe_dump(CONFIG))
    path, targets, workers = equal_fleets(source, tmp_path, routed="routed")
    document = yaml.safe_load(path.read_text())
    assert targets["routed"] == "tiny"
    assert set(targets) == {"routed", "dflash2-margin", "mtp-n3", "ar"}
    for target, model in targets.items():
        fleet = [w for w in document["workers"] if w["model"] == model]
        assert len(fleet) == 3
        assert sum(w["slots"] for w in fleet) == 6
        if target != "routed":
            assert {w["mode"] for w in fleet} == {target}
    names = [w["name"] for w in document["workers"]]
    assert tuple(names) == workers
    assert len(set(names)) == 12
    drafts = [w for w in document["workers"] if w["mode"] == "dflash2-margin"]
    assert all(w["draft"] == "/m/d.gguf" for w in drafts)


def test_one_mode_is_nothing_to_compare(tmp_path):
    source = tmp_path / "c.yaml"
    source.write_text(yaml.safe_dump(CONFIG | {"workers": CONFIG["workers"][:1]}))
    with pytest.raises(ValueError, match="nothing to compare"):
        equal_fleets(source, tmp_path, routed="routed")


def test_a_config_without_a_model_is_nothing_to_measure(tmp_path):
    source = tmp_path / "c.yaml"
    source.write_text("redis: {url: redis://localhost}")
    with pytest.raises(ValueError, match="no model"):
        equal_fleets(source, tmp_path, routed="routed")


def test_a_worker_that_leaves_its_mode_out_runs_ar(tmp_path):
    source = tmp_path / "c.yaml"
    plain = {"name": "c", "model": "tiny"}
    source.write_text(yaml.safe_dump(CONFIG | {"workers": [*CONFIG["workers"][:2], plain]}))
    _, targets, _ = equal_fleets(source, tmp_path, routed="routed")
    assert set(targets) == {"routed", "dflash2-margin", "mtp-n3", "ar"}
