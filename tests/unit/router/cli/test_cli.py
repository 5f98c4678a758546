from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from router.cli import COMMANDS, root


def _commands(name: str, command: click.Command) -> list[tuple[str, click.Command]]:
    inner = command.commands if isinstance(command, click.Group) else {}
    below = [pair for word, one in inner.items() for pair in _commands(f"{name} {word}", one)]
    return [(name, command), *below]


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_is_a_line_that_can_be_copied(name):
    command = root.get_command(click.Context(root), name)
    assert command is not None
    for path, one in _commands(name, command):
        lines = CliRunner().invoke(one, ["--help"]).output.splitlines()
        example = lines[lines.index("  Example:") + 1]
        assert "specroute " in example, path
        whole = [line.strip() for line in (one.help or "").splitlines()]
        assert example.strip() in whole, path
