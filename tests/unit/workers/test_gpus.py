from __future__ import annotations

from workers.gpus import inventory, parse
from workers.placement import GPU


def test_lines_of_nvidia_smi():
    text = "0, Tesla P40, 24576, 24000\n1, NVIDIA RTX 4060, 8188, 100\nNo devices\n, , ,\n"
    assert parse(text) == (GPU(0, "Tesla P40", 24576, 24000), GPU(1, "NVIDIA RTX 4060", 8188, 100))
    assert parse("") == ()


def test_a_program_is_asked_when_there_is_one(tmp_path):
    assert inventory(str(tmp_path)) == ()
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '0, Tesla P40, 24576, 24000'\n")
    program.chmod(0o755)
    assert inventory(str(tmp_path)) == (GPU(0, "Tesla P40", 24576, 24000),)
    program.write_text("#!/bin/sh\nexit 9\n")
    assert inventory(str(tmp_path)) == ()
