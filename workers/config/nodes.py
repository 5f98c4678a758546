"""YAML text as plain data that knows its lines: whatever a text holds, it ends in findings."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.reader import ReaderError

from workers.config.problems import Finding, Location, spelled

_DEEPEST = 50  # levels of nesting; a config has six, and Python's stack is not endless
_REPEATS = 10_000  # values that aliases may add: ten lines of them can stand for millions
_LARGEST = 64  # bits of a number; Python refuses to print one of thousands of digits
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # in no path, argument or variable
_OURS = "tag:yaml.org,2002:"
_AS_TEXT = "correct it, or put quotes around it if it is text"
_SYNTAX = "correct the indentation, quotes or brackets at or just above this line"


class _Fault(Exception):
    """What ends the reading, as nothing that follows could be trusted."""

    def __init__(self, line: int | None, message: str, fix: str) -> None:
        super().__init__(message)
        self.line = line
        self.finding = Finding((), message, fix)


@dataclass(slots=True)
class Text:
    """What a text holds. Values that could not be read are None, with a finding."""

    data: Any = None
    lines: dict[Location, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _met: set[int] = field(default_factory=set)  # nodes, to tell what aliases repeat
    _repeats: int = 0

    def value(self, node: yaml.Node, at: Location) -> Any:
        """A node as plain data; notes its line, and keys that are written twice."""
        self.lines.setdefault(at, node.start_mark.line + 1)
        self._bound(node, at)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*at, i)) for i, item in enumerate(node.value)]
        return self._scalar(node, at)

    def _bound(self, node: yaml.Node, at: Location) -> None:
        """An alias may stand inside what it names, or for ten others of its kind."""
        self._repeats += id(node) in self._met
        self._met.add(id(node))
        if len(at) > _DEEPEST:
            message = f"`{spelled(at[:1])}` is nested deeper than {_DEEPEST} levels by an alias"
            fix = "write the value itself where the alias stands"
            raise _Fault(self.lines.get(at[:1]), message, fix)
        if self._repeats > _REPEATS:
            message = f"aliases repeat more than {_REPEATS} values"
            raise _Fault(self.lines.get(at[:1]), message, "write the values themselves")

    def _mapping(self, node: yaml.MappingNode, at: Location) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value
            if not isinstance(key, str) or _UNUSABLE.search(key):
                self._note((*at, f"key on line {line}"), line, "a key is no word", "write a name")
                continue
            location = (*at, key)
            if key in result:
                message = f"`{key}` is written twice, here and on line {self.lines[location]}"
                self._note((*location, "twice"), line, message, "keep one of them")
            self.lines[location] = line
            result[key] = self.value(value_node, location)
        return result

    def _note(self, at: Location, line: int, message: str, fix: str) -> None:
        self.lines[at] = line
        self.findings.append(Finding(at, message, fix))

    def _scalar(self, node: yaml.Node, at: Location) -> Any:
        try:
            value = yaml.SafeLoader("").construct_object(node)
        except Exception:  # noqa: BLE001 - each tag's constructor has its own ways to fail
            self.findings.append(Finding(at, *_misread(node, spelled(at))))
            return None
        if isinstance(value, int) and value.bit_length() > _LARGEST:
            message = f"`{spelled(at)}` is too large a number"
            self.findings.append(Finding(at, message, "give one of at most 18 digits"))
            return None
        if isinstance(value, str) and _UNUSABLE.search(value):
            message = f"`{spelled(at)}` holds a NUL or half a character, which no program can take"
            self.findings.append(Finding(at, message, r"remove the \0 or \u escape"))
            return None
        return value


def _misread(node: yaml.Node, name: str) -> tuple[str, str]:
    """Message and fix for a value that is not what its tag, written or guessed, says."""
    kind, text = node.tag.removeprefix(_OURS), str(node.value)
    if kind == node.tag:
        return f"`{name}` has a tag that means nothing here: {kind:.40}", "write the value itself"
    return f"`{name}` looks like a YAML {kind:.40}, but {text[:40]!r} is none", _AS_TEXT


class _Loader(yaml.SafeLoader):
    """Refuses nesting that would exhaust the stack: its own, or that of whoever reads on."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """As yaml's, a level deeper."""
        if self._depth > _DEEPEST:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            message = f"is nested deeper than {_DEEPEST} levels"
            raise _Fault(
                event.start_mark.line + 1, message, "close the brackets, or write the value flat"
            )
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def read_text(text: str) -> Text:
    """Every value of a YAML text with its line, and what is wrong with it; never raises."""
    read = Text()
    try:
        node = _composed(text)
        read.data = {} if node is None else read.value(node, ())
    except _Fault as fault:
        read.data = None
        # Nothing else is said: it would be about a part only.
        read.lines = {} if fault.line is None else {(): fault.line}
        read.findings = [fault.finding]
    return read


def _composed(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_Loader)
    except _Fault:
        raise
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"is not YAML: it holds the character {text[error.position]!r}"
        raise _Fault(line, message, "remove it") from error
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark.line + 1 if error.problem_mark else None
        raise _Fault(at, f"is not YAML: {error.problem}", _syntax_fix(text, at)) from error
    except Exception as error:  # an escape beyond Unicode is a ValueError to PyYAML
        raise _Fault(None, f"is not YAML: {error}", "correct its quotes and escapes") from error


def _syntax_fix(text: str, line: int | None) -> str:
    """The usual causes; a variable inside braces is the one that is hard to see."""
    lines = text.splitlines()
    if line is not None and line <= len(lines) and "${" in lines[line - 1]:
        return "put quotes around a ${VARIABLE} that stands inside { } or [ ]"
    return _SYNTAX
