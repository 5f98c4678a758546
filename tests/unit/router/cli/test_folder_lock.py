"""One `up` for each state folder, and nothing stale after a kill."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from router.cli.bench import bench
from router.cli.folder_lock import FolderInUse, held_folder
from router.cli.up import up

# Holds the folder, starts a child that would inherit what can be inherited, and tells its pid.
HOLDER = """
import pathlib, subprocess, sys, time
from router.cli.folder_lock import held_folder
with held_folder(pathlib.Path(sys.argv[1])):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    print(child.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds `tmp_path`, and the pid of a child that it leaves behind."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    yield process, child
    process.kill()
    process.wait()
    process.stdout.close()
    os.kill(child, 9)


def test_a_second_one_is_told_who_has_the_folder(tmp_path, holder):
    process, _ = holder
    with pytest.raises(FolderInUse) as refused, held_folder(tmp_path):
        pass
    assert f"in use by pid {process.pid}; end it or choose another" in refused.value.message


def test_a_killed_holder_leaves_nothing_though_its_child_lives(tmp_path, holder):
    process, child = holder
    process.kill()
    process.wait()
    os.kill(child, 0)
    with held_folder(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_folder_is_free_again_afterwards(tmp_path):
    for _ in range(2):
        with held_folder(tmp_path / "new"):
            pass


@pytest.mark.parametrize("command", [[up], [bench, "--quick"]])
def test_the_commands_refuse_before_they_write_anything(tmp_path, holder, command):
    process, _ = holder
    told = CliRunner().invoke(command[0], [*command[1:], "--state-dir", str(tmp_path)])
    assert told.exit_code == 1
    assert f"pid {process.pid}" in told.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock"]


def test_a_folder_that_cannot_be_is_a_usage_error(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(click.UsageError, match=r"cannot be made .* choose another"),
        held_folder(tmp_path / "file" / "x"),
    ):
        pass
    told = CliRunner().invoke(up, ["--state-dir", "/dev/null/x"])
    assert told.exit_code == 2
    assert "choose another with --state-dir" in told.stderr
