"""The YAML text as plain data that remembers its lines, with the environment worked in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

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
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        source.findings.append(
            Finding((), f"cannot be read: {error.strerror}", "give the path of a readable file")
        )
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        source.lines[()] = mark.line + 1 if mark else 1
        reason = getattr(error, "problem", None) or str(error)
        source.findings.append(Finding((), f"is not YAML: {reason}", _yaml_fix(path, mark)))
    else:
        data = {} if node is None else _data(source, node, ())
        if isinstance(data, dict):
            source.data = data
        else:
            fix = "start it with a section, such as `models:`"
            source.findings.append(Finding((), "must be sections with keys", fix))


def _yaml_fix(path: Path, mark: yaml.Mark | None) -> str:
    """The usual causes; a variable inside braces is the one that is hard to see."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if mark is not None and mark.line < len(lines) and "${" in lines[mark.line]:
        return "put quotes around a ${VARIABLE} that stands inside { } or [ ]"
    return "correct the indentation, quotes or brackets at or just above this line"


def _data(source: Source, node: yaml.Node, at: Location) -> Any:
    """A node as plain data; notes its line, and keys that are written twice."""
    source.lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(source, node, at)
    if isinstance(node, yaml.SequenceNode):
        return [_data(source, item, (*at, i)) for i, item in enumerate(node.value)]
    return yaml.SafeLoader("").construct_object(node)


def _mapping(source: Source, node: yaml.MappingNode, at: Location) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(getattr(key_node, "value", ""))
        location = (*at, key)
        if key in result:
            line = key_node.start_mark.line + 1
            message = f"`{key}` is written twice, here and on line {source.lines[location]}"
            source.lines[*location, "twice"] = line
            finding = Finding((*location, "twice"), message, "keep one of them")
            source.findings.append(finding)
        source.lines[location] = key_node.start_mark.line + 1
        result[key] = _data(source, value_node, location)
    return result


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
    for part in parts[:-1]:
        step = _step(holder, part)
        if step is None:
            fix = "use the name or the index of an entry that the file has"
            source.origins[variable,] = variable
            source.findings.append(Finding((variable,), f"overrides nothing: no {part!r}", fix))
            return
        location = (*location, step)
        holder = holder[step]
    holder[parts[-1]] = _value(text)
    source.origins[*location, parts[-1]] = variable


def _step(holder: Any, part: str) -> str | int | None:
    """The key or index that an override's part means; makes missing sections."""
    if isinstance(holder, list):
        names = [str(i.get("name", "")) if isinstance(i, dict) else "" for i in holder]
        lowered = [name.lower().replace("-", "_") for name in names]
        if part in lowered:
            return lowered.index(part)
        return int(part) if part.isdigit() and int(part) < len(holder) else None
    if not isinstance(holder.get(part), dict | list):
        holder[part] = {}
    return part


def _value(text: str) -> Any:
    """Lists and maps are written as in YAML; a scalar stays text until its type is known."""
    if text.strip()[:1] not in ("[", "{"):
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def without(data: Any, locations: Iterable[Location]) -> None:
    """Remove those values in place, so that the rest can be judged; absent ones are fine."""
    for location in sorted(locations, key=lambda at: tuple(map(str, at)), reverse=True):
        holder = data
        for part in location[:-1]:
            holder = holder[part]
        if isinstance(holder, dict):
            holder.pop(location[-1], None)
