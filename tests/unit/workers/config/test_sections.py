from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from workers.config.sections import GPUSection, WorkerSection


def test_layers_are_a_number_or_all():
    assert GPUSection(layers="all").layers == "all"
    assert GPUSection(layers="40", devices=["0", "Vulkan1", 2]) == GPUSection(
        layers=40, devices=(0, "Vulkan1", 2)
    )
    for bad in ("many", -1, True, 1.5):
        with pytest.raises(ValidationError, match="layers"):
            GPUSection(layers=bad)


def test_paths_of_home_are_expanded_and_empty_ones_are_none():
    worker = WorkerSection(name="w", model="m", draft="~/d.gguf", binary="")
    assert worker.draft == Path.home() / "d.gguf"
    assert worker.binary is None


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", "a" * 65, 5, "a:b"])
def test_worker_names_are_safe_in_files_headers_and_keys(name):
    with pytest.raises(ValidationError, match="name"):
        WorkerSection(name=name, model="m")
