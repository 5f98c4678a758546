"""Options that several commands take, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[Any], Any]


def config_option(help_text: str, *, required: bool = True) -> Decorator:
    """`-c FILE`, given to the command as `path`."""
    return click.option(
        "-c",
        "--config",
        "path",
        type=click.Path(path_type=Path, dir_okay=False),
        required=required,
        help=help_text,
    )


def state_dir_option(help_text: str) -> Decorator:
    """`--state-dir DIR`, given to the command as `state_dir`."""
    return click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(".specroute"),
        show_default=True,
        help=help_text,
    )
