"""Secrets that `up` makes once and keeps in its state folder, readable by its owner only."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path


def private_folder(path: Path) -> Path:
    """Create `path` with mode 0700; returns it resolved.

    Raises:
        click.UsageError: there can be no such folder.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(
            f"the state folder {path} cannot be made ({error.strerror}); "
            "choose another with --state-dir"
        ) from error
    return path.resolve()


def kept_secret(state_dir: Path, name: str, configured: str | None = None) -> str:
    """The configured value, else the one in `state_dir/name`, else a new one written there."""
    if configured:
        return configured
    path = state_dir / name
    if path.is_file():
        return path.read_text().strip()
    value = secrets.token_urlsafe(32)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(value + "\n")
    return value
