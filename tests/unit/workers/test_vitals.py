"""The end of a log without anything private, and memory as the system tells it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from tests.fakes.gateway import HandClock, record
from workers.record import WorkerRecord
from workers.vitals import (
    GPU_EVERY_S,
    LINE_CHARS,
    Vitals,
    last_lines,
    parse_gpu_memory,
    resident_bytes,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_last_whole_lines_cut_to_size(tmp_path: Path) -> None:
    log = tmp_path / "code.log"
    log.write_text("".join(f"line {i} {'x' * 300}\n" for i in range(100)))
    found = last_lines(str(log), 3)
    assert [line.split()[1] for line in found] == ["97", "98", "99"]
    assert {len(line) for line in found} == {LINE_CHARS}
    assert all(line.startswith("line") for line in last_lines(str(log), 1000))


def test_private_lines_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "code.log"
    log.write_text('loaded\nrequest: {"content": "secret"}\nAuthorization: Bearer k\nidle\n')
    assert last_lines(str(log)) == ("loaded", "idle")


def test_no_log_is_no_lines(tmp_path: Path) -> None:
    assert last_lines("") == last_lines(str(tmp_path / "none.log")) == ()


def test_memory_of_this_process_and_of_none() -> None:
    assert 1e6 < (resident_bytes(os.getpid()) or 0) < 1e11
    assert resident_bytes(2**30) is None


def test_gpu_memory_adds_up_over_devices() -> None:
    assert parse_gpu_memory("7, 100\n7, 50\n8, [N/A]\ngarbage\n") == {7: 150 * 1024 * 1024}


async def test_nvidia_smi_is_asked_once_in_a_while(tmp_path: Path) -> None:
    program, calls = tmp_path / "nvidia-smi", tmp_path / "calls"
    program.write_text(f'#!/bin/sh\necho x >> {calls}\necho "1, 2048"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    clock = HandClock()
    vitals = Vitals(str(tmp_path), clock)
    for _ in range(3):
        await vitals.refresh()
        clock.advance(GPU_EVERY_S / 2)
    assert vitals.of(record("code"))["gpu_memory_bytes"] == 2048 * 1024 * 1024
    assert calls.read_text().count("x") == 2


async def test_without_nvidia_smi_nothing_is_known() -> None:
    vitals = Vitals("", HandClock())
    await vitals.refresh()
    assert vitals.of(record("code"))["gpu_memory_bytes"] is None


def test_a_record_carries_them() -> None:
    sent = record("code", log_tail=("a", "b"), memory_bytes=5)
    assert WorkerRecord.loads(sent.dumps()) == sent
