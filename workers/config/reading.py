"""From file and environment to a Config, with pydantic's complaints put into our words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from workers.config.document import Config
from workers.config.problems import ConfigError, Finding, Location, Problem, spelled, suggestion
from workers.config.rules import broken_rules
from workers.config.source import Source, read_source, without

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic_core import ErrorDetails

_ROUNDS = 4  # removing a bad value can uncover that a required one is missing
_REQUIRED = ("name", "model", "label")


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The configuration of a file, or the defaults, with `SPECROUTE_SECTION__KEY` on top.

    Raises:
        ConfigError: every problem of the text and of how its parts go together.
    """
    config, problems = read_config(path, environ)
    if problems or config is None:
        raise ConfigError(problems)
    return config


def read_config(
    path: Path | None, environ: Mapping[str, str]
) -> tuple[Config | None, tuple[Problem, ...]]:
    """What can be understood of a configuration, and every problem in it.

    Values that cannot be read are left out, so that one mistake does not hide another.
    """
    source = read_source(path, environ)
    findings = list(source.findings)
    config = None
    for _ in range(_ROUNDS):
        try:
            config = Config.model_validate(source.data).written_in(path, source)
            break
        except ValidationError as error:
            found = [_finding(source, item) for item in error.errors()]
            known = {finding.location for finding in findings}
            findings += _said_once([new for new in found if new.location not in known])
            without(source.data, {finding.location for finding in found})
            _stand_in(source, found)
    rules = broken_rules(config) if config is not None else ()
    placed = [source.place(finding) for finding in (*findings, *rules)]
    problems = sorted(dict.fromkeys(placed), key=lambda p: (p.path, p.line or 0))
    return config, tuple(problems)


def _stand_in(source: Source, findings: list[Finding]) -> None:
    """Give required values that are missing, or were unreadable, something to be judged with."""
    models = source.data.get("models")
    first = models[0] if isinstance(models, list) and models else None
    model = first.get("name") if isinstance(first, dict) else None
    for *parents, key in (finding.location for finding in findings if finding.location):
        holder: Any = source.data
        for part in parents:
            holder = holder[part]
        if key in _REQUIRED and isinstance(holder, dict):
            unnamed = f"unnamed-{'-'.join(map(str, parents))}"
            holder[key] = model if key == "model" and model else unnamed


def _finding(source: Source, error: ErrorDetails) -> Finding:
    location = _location(source, error["loc"])
    message, fix = _words(location, error)
    return Finding(location, message, fix)


def _words(location: Location, error: ErrorDetails) -> tuple[str, str]:
    """A sentence and a fix for one complaint."""
    kind, name = error["type"], spelled(location)
    if kind == "extra_forbidden":
        return f"unknown key `{name}`", suggestion(str(location[-1]), _known_keys(location[:-1]))
    if kind == "missing":
        return f"`{name}` is missing", f"add `{location[-1]}:` here"
    value = _shortened(error.get("input"))
    if kind == "literal_error":
        known = [word.strip("'") for word in _expected(error).replace(" or ", ", ").split(", ")]
        return f"`{name}` cannot be {value}", suggestion(str(error["input"]), known)
    reason, _, fix = error["msg"].removeprefix("Value error, ").partition("|")
    reason = reason.removeprefix("Input should be ").partition(", unable")[0]
    if kind == "value_error" and fix:
        return f"`{name}`: {reason}", fix
    reason = reason.removeprefix("must be ")
    return f"`{name}` cannot be {value}", f"it must be {reason}"


def _expected(error: ErrorDetails) -> str:
    return str(error.get("ctx", {}).get("expected", ""))


def _location(source: Source, loc: tuple[str | int, ...]) -> Location:
    """pydantic's path without the names of union members that it appends."""
    holder: Any = source.data
    location: Location = ()
    for part in loc:
        if part == "[key]":  # pydantic's way to say that the key, not its value, is wrong
            break
        if isinstance(holder, dict) and isinstance(part, str):
            location = (*location, part)
            holder = holder.get(part)
        elif isinstance(holder, list) and isinstance(part, int):
            location = (*location, part)
            holder = holder[part]
        else:
            break
    return location


def _known_keys(location: Location) -> list[str]:
    """Field names of the section at that place."""
    model: type[BaseModel] = Config
    for part in location:
        if isinstance(part, str) and part in model.model_fields:
            model = _section_in(model.model_fields[part].annotation) or model
    return list(model.model_fields)


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """The section inside `Section`, `tuple[Section, ...]` or `Section | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_section_in(argument) for argument in get_args(annotation))
    return next((section for section in found if section is not None), None)


def _said_once(findings: list[Finding]) -> list[Finding]:
    """The first complaint about each value: members of a union each have theirs."""
    return list({finding.location: finding for finding in reversed(findings)}.values())[::-1]


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
