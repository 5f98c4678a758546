"""The YAML text as plain data that remembers its lines, with the environment worked in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workers.config.nodes import Text, read_text
from workers.config.problems import Finding, Location, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
_OVERRIDE = "SPECROUTE_"


@dataclass(slots=True)
class Source:
    """Data and where each value stands. `origins` are values that came from the environment."""

    path: str
    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[Location, int] = field(default_factory=dict)
    origins: dict[Location, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def place(self, finding: Finding) -> Problem:
        """The finding with its file and line: of the value, or of what it is missing from."""
        for length in range(len(finding.location), -1, -1):
            prefix = finding.location[:length]
            if prefix in self.origins:
                return Problem(self.origins[prefix], None, finding.message, finding.fix)
            if prefix in self.lines:
                return Problem(self.path, self.lines[prefix], finding.message, finding.fix)
        return Problem(self.path, None, finding.message, finding.fix)


def read_source(path: Path | None, environ: Mapping[str, str]) -> Source:
    """Read the file, expand `${VAR}`, apply overrides. No file: overrides alone."""
    source = Source("no file" if path is None else str(path))
    if path is not None:
        _read_file(source, path)
    source.data = {k: _expanded(source, (k,), v, environ) for k, v in source.data.items()}
    _override(source, environ)
    return source


def _read_file(source: Source, path: Path) -> None:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        source.findings.append(
            Finding((), f"cannot be read: {error.strerror}", "give the path of a readable file")
        )
    except UnicodeDecodeError as error:
        source.lines[()] = error.object.count(b"\n", 0, error.start) + 1
        message = f"is not text in UTF-8: {error.reason}"
        source.findings.append(Finding((), message, "save it as UTF-8"))
    else:
        _take_in(source, read_text(text))


def _take_in(source: Source, text: Text) -> None:
    source.lines |= text.lines
    source.findings += text.findings
    if isinstance(text.data, dict):
        source.data = text.data
    elif not text.findings:
        fix = "start it with a section, such as `models:`"
        source.findings.append(Finding((), "must be sections with keys", fix))


def _expanded(source: Source, at: Location, value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {k: _expanded(source, (*at, k), v, environ) for k, v in value.items()}
    if isinstance(value, list):
        return [_expanded(source, (*at, i), item, environ) for i, item in enumerate(value)]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(source, at, found, environ), value)
    return value


def _variable(
    source: Source, at: Location, found: re.Match[str], environ: Mapping[str, str]
) -> str:
    name, default = found.groups()
    if name in environ:
        return environ[name]
    if default is None:
        fix = f"export {name}, or write ${{{name}:-default}}"
        source.findings.append(Finding(at, f"the environment has no {name}", fix))
    return default or ""


def _override(source: Source, environ: Mapping[str, str]) -> None:
    """`SPECROUTE_SECTION__KEY`, and `SPECROUTE_WORKERS__NAME__KEY` for an entry of a list."""
    for variable in sorted(environ):
        parts = variable.removeprefix(_OVERRIDE).lower().split("__")
        if variable.startswith(_OVERRIDE) and len(parts) > 1 and all(parts):
            _set(source, parts, environ[variable], variable)


def _set(source: Source, parts: list[str], text: str, variable: str) -> None:
    holder: Any = source.data
    location: Location = ()
    for left, part in zip(range(len(parts) - 1, -1, -1), parts, strict=True):
        step = _step(holder, part, last=not left)
        if step is None:
            fix = "use the name or the index of an entry that the file has"
            source.origins[variable,] = variable
            source.findings.append(Finding((variable,), f"overrides nothing: no {part!r}", fix))
            return
        location = (*location, step)
        if left:
            holder = holder[step]
    holder[location[-1]] = _value(text)
    source.origins[location] = variable


def _step(holder: Any, part: str, *, last: bool) -> str | int | None:
    """The key or index that an override's part means; makes missing sections."""
    if isinstance(holder, list):
        names = [str(i.get("name", "")) if isinstance(i, dict) else "" for i in holder]
        lowered = [name.lower().replace("-", "_") for name in names]
        if part in lowered:
            return lowered.index(part)
        return int(part) if part.isdecimal() and int(part) < len(holder) else None
    if not isinstance(holder, dict):
        return None
    if not last and not isinstance(holder.get(part), dict | list):
        holder[part] = {}
    return part


def _value(text: str) -> Any:
    """Lists and maps are written as in YAML; a scalar stays text until its type is known."""
    if text.strip()[:1] not in ("[", "{"):
        return text
    read = read_text(text)
    return text if read.findings else read.data


def without(data: Any, locations: Iterable[Location]) -> None:
    """Remove those values in place, so that the rest can be judged; absent ones are fine."""
    for location in sorted(locations, key=lambda at: tuple(map(str, at)), reverse=True):
        holder = data
        for part in location[:-1]:
            holder = holder[part]
        if isinstance(holder, dict):
            holder.pop(location[-1], None)
