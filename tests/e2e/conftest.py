"""A `specroute up` for each test that breaks it; tests/conftest.py has the one for all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.running import start_stack, stop_stack

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def start():
    """Starts stacks that are stopped when the test ends, however it ends."""
    started = []

    def run(state_dir: Path):
        started.append(start_stack(state_dir))
        return started[-1]

    yield run
    for running in started:
        stop_stack(running)


@pytest.fixture
def own_stack(tmp_path: Path):
    """An `up` of this test alone, for tests that break it."""
    running = start_stack(tmp_path / "state")
    yield running
    stop_stack(running)
