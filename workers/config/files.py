"""Whether the files that a configuration names are there and are what they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.config.problems import Finding, Problem
from workers.config.rules import broken_rules, nothing_serves

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from workers.config.document import Config
    from workers.config.problems import Location

_MAGIC = b"GGUF"


def check_config(config: Config) -> tuple[Problem, ...]:
    """Every problem that shows without starting anything: broken rules, and files on this host."""
    findings = (*broken_rules(config), *_file_findings(config))
    return tuple(config.source.place(finding) for finding in findings)


def check_servable(config: Config) -> tuple[Problem, ...]:
    """The problem of a configuration with which nothing could ever be served."""
    return tuple(config.source.place(finding) for finding in nothing_serves(config))


def _file_findings(config: Config) -> Iterator[Finding]:
    for i, model in enumerate(config.models):
        yield from _model_file(("models", i, "target"), config.resolved(model.target))
    for i, worker in enumerate(config.workers):
        yield from _model_file(("workers", i, "draft"), config.resolved(worker.draft))


def _model_file(location: Location, path: Path | None) -> Iterator[Finding]:
    if path is None:
        return
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        yield Finding(location, message, "correct the path, or put the model there")
    else:
        if magic != _MAGIC:
            message = f"{path} is not a GGUF file"
            yield Finding(
                location, message, "give llama.cpp's model format (its first bytes: GGUF)"
            )
