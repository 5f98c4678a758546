from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import ValidationError

from workers.config import check_config, default_config, load_config


@dataclass(frozen=True)
class Trio:
    target: Path = Path("/t.gguf")
    draft: Path = Path("/d.gguf")


def test_the_tiny_trio_in_three_modes():
    config = default_config(Trio())
    specs = {spec.name: spec for spec in config.worker_specs()}
    assert {name: spec.mode for name, spec in specs.items()} == {
        "dflash": "dflash2-margin",
        "mtp": "mtp-n3",
        "plain": "ar",
    }
    assert {(s.model, s.context, s.slots, s.threads) for s in specs.values()} == {
        ("tiny", 4096, 2, 1)
    }
    assert specs["dflash"].draft == Path("/d.gguf")
    assert all(spec.target == Path("/t.gguf") for spec in specs.values())


def test_without_a_trio_there_is_nothing_to_serve():
    assert default_config(None).worker_specs() == ()
    assert check_config(default_config(None)) == ()


def test_a_configuration_does_not_change():
    config = default_config(Trio())
    with pytest.raises(ValidationError, match="frozen"):
        config.server.port = 1


def test_an_unquoted_on_or_off_is_meant_as_written(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        "models: [{name: m, target: m.gguf}]\n"
        "workers:\n"
        "  - {name: a, model: m, mode: ar, reasoning: off}\n"
        "  - {name: b, model: m, mode: ar, reasoning: on}\n"
        "  - {name: c, model: m, mode: ar, reasoning: auto}\n"
    )
    specs = load_config(path, {}).worker_specs()
    assert [spec.reasoning for spec in specs] == ["off", "on", "auto"]
