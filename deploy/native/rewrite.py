"""Source text for mypyc: dataclasses written out, so that they become native classes.

mypyc leaves a dataclass its interpreted initialiser, which is most of what a small value costs,
and refuses `slots`. This writes `__init__`, `__eq__`, `__hash__` and `__repr__` into the class and
takes the decorator away; nothing else of a module changes, and its line numbers only below a class.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeAlias

Insertion: TypeAlias = tuple[int, list[str]]
"""The number of the line after which lines are added, and the lines."""

_HELPER = "from specroute_native import described as _described"
_FOR_TYPES = ("collections.abc", "contextlib", "pathlib", "types", "typing")
"""Modules whose names mypyc looks up when it makes a class, although only annotations have them."""


@dataclass(frozen=True)
class Field:
    """One field of a dataclass: annotation and default as source text."""

    name: str
    annotation: str
    default: str | None = None
    factory: str | None = None
    init: bool = True
    shown: bool = True

    @property
    def parameter(self) -> str:
        """As a parameter of the initialiser."""
        if self.factory is not None:
            return f"{self.name}: {self.annotation} | None = None"
        default = "" if self.default is None else f" = {self.default}"
        return f"{self.name}: {self.annotation}{default}"

    @property
    def assignment(self) -> str:
        """As a statement of the initialiser."""
        made = f"({self.factory})()" if self.factory is not None else self.default
        if not self.init:
            return f"self.{self.name} = {made}"
        if self.factory is None:
            return f"self.{self.name} = {self.name}"
        return f"self.{self.name} = {made} if {self.name} is None else {self.name}"


def rewrite(text: str) -> str:
    """The source `text` of a module with its dataclasses written out.

    Raises:
        SyntaxError: it is not Python.
        ValueError: something in it would not work compiled; says what and in which line.
    """
    tree = ast.parse(text)
    if rows := suspended_handlers(tree):
        raise ValueError(f"waits while it handles an exception: lines {rows}")
    lines = text.split("\n")
    known: dict[str, list[Field]] = {}
    added: list[Insertion] = [
        (node.lineno - 1, _for_types(node))
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    for cls in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        _without_slots(cls, lines)
        decorator = _decorator(cls)
        if decorator is not None:
            known[cls.name] = [*_inherited(cls, known), *_fields(cls)]
            _stripped(cls, lines)
            added += _written_out(cls, decorator, known[cls.name])
    if known:
        added.append((_last_future_import(tree), [_HELPER]))
    for after, new in sorted(added, key=lambda one: one[0], reverse=True):
        lines[after:after] = new
    return "\n".join(lines)


def suspended_handlers(tree: ast.AST) -> list[int]:
    """Lines at which a coroutine or generator may be suspended in an `except` or a `finally`.

    mypyc keeps the exception that is being handled for the thread and not for the coroutine:
    suspended there, whatever runs next seems to run in that handler, and a bare `raise` somewhere
    else raises it. `asyncio.timeout` is not suspended in its exit; other `async with` may be.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            handled = [*node.finalbody, *(line for row in node.handlers for line in row.body)]
            found += [line.lineno for line in handled if _may_suspend(line)]
        elif isinstance(node, ast.AsyncWith):
            rows = [ast.unparse(item.context_expr) for item in node.items]
            found += [node.lineno for row in rows if not row.startswith("asyncio.timeout")]
    return sorted(set(found))


def _may_suspend(statement: ast.stmt) -> bool:
    kinds = (ast.Await, ast.AsyncWith, ast.AsyncFor, ast.Yield, ast.YieldFrom)
    return any(isinstance(node, kinds) for node in ast.walk(statement))


def _last_future_import(tree: ast.Module) -> int:
    rows = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    return max(node.end_lineno or 0 for node in rows)


def _for_types(block: ast.If) -> list[str]:
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return [ast.unparse(node) for node in imports if node.module in _FOR_TYPES]


def _decorator(cls: ast.ClassDef) -> ast.expr | None:
    for one in cls.decorator_list:
        name = one.func if isinstance(one, ast.Call) else one
        if ast.unparse(name) == "dataclass":
            return one
    return None


def _options(decorator: ast.expr) -> dict[str, bool]:
    """The options of a `dataclass(...)`.

    Raises:
        ValueError: one that is not handled.
    """
    rows = decorator.keywords if isinstance(decorator, ast.Call) else []
    made = {str(row.arg): ast.literal_eval(row.value) for row in rows}
    if unknown := set(made) - {"frozen", "slots", "eq", "kw_only"}:
        raise ValueError(f"dataclass options that cannot be written out: {sorted(unknown)}")
    return made


def _inherited(cls: ast.ClassDef, known: dict[str, list[Field]]) -> list[Field]:
    return [field for base in cls.bases for field in known.get(ast.unparse(base), [])]


def _annotated(cls: ast.ClassDef) -> list[tuple[str, ast.AnnAssign]]:
    """Name and statement of each field."""
    return [
        (node.target.id, node)
        for node in cls.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and not ast.unparse(node.annotation).startswith("ClassVar")
    ]


def _fields(cls: ast.ClassDef) -> list[Field]:
    return [_field(name, node) for name, node in _annotated(cls)]


def _field(name: str, node: ast.AnnAssign) -> Field:
    annotation, value = ast.unparse(node.annotation), node.value
    if value is None:
        return Field(name, annotation)
    if not (isinstance(value, ast.Call) and ast.unparse(value.func) == "field"):
        return Field(name, annotation, ast.unparse(value))
    said = {str(row.arg): ast.unparse(row.value) for row in value.keywords}
    return Field(
        name,
        annotation,
        said.get("default"),
        said.get("default_factory"),
        init=said.get("init") != "False",
        shown=said.get("repr") != "False",
    )


def _without_slots(cls: ast.ClassDef, lines: list[str]) -> None:
    for node in cls.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            _blank(node, lines)
            if len(cls.body) == 1:
                lines[node.lineno - 1] = " " * node.col_offset + "pass"


def _stripped(cls: ast.ClassDef, lines: list[str]) -> None:
    """Blank out the decorators and what the fields are set to."""
    for decorator in cls.decorator_list:
        _blank(decorator, lines)
    for name, node in _annotated(cls):
        if node.value is not None:
            _blank(node, lines)
            annotation = ast.unparse(node.annotation)
            lines[node.lineno - 1] = f"{' ' * node.col_offset}{name}: {annotation}"


def _blank(node: ast.stmt | ast.expr, lines: list[str]) -> None:
    for number in range(node.lineno - 1, node.end_lineno or node.lineno):
        lines[number] = ""


def _written_out(cls: ast.ClassDef, decorator: ast.expr, fields: list[Field]) -> list[Insertion]:
    """The description goes first: what is added later at a line comes to stand above."""
    end = max(node.end_lineno or 0 for node in cls.body)
    indent = " " * (cls.col_offset + 4)
    methods = [indent + line for line in _methods(cls, _options(decorator), fields)]
    names = [field.name for field in fields]
    described = f"{' ' * cls.col_offset}_described({cls.name}, {names!r})"
    return [(end, [described]), (end, methods)]


def _methods(cls: ast.ClassDef, options: dict[str, bool], fields: list[Field]) -> list[str]:
    own = {node.name for node in cls.body if isinstance(node, ast.FunctionDef)}
    lines = _init(fields, kw_only=options.get("kw_only", False), after="__post_init__" in own)
    if options.get("eq", True) and "__eq__" not in own:
        lines += _equality(cls.name, fields)
        if options.get("frozen", False) and "__hash__" not in own:
            lines += ["def __hash__(self) -> int:", f"    return hash({_values('self', fields)})"]
    if "__repr__" not in own:
        shown = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in fields if f.shown)
        lines += ["def __repr__(self) -> str:", f"    return f'{cls.name}({shown})'"]
    return lines


def _init(fields: list[Field], *, kw_only: bool, after: bool) -> list[str]:
    star = ["*"] if kw_only else []
    parameters = ", ".join(["self", *star, *(f.parameter for f in fields if f.init)])
    body = [field.assignment for field in fields] + (["self.__post_init__()"] if after else [])
    return [f"def __init__({parameters}) -> None:", *(f"    {line}" for line in body or ["pass"])]


def _equality(name: str, fields: list[Field]) -> list[str]:
    return [
        "def __eq__(self, other: object) -> bool:",
        f"    if not isinstance(other, {name}):",
        "        return NotImplemented",
        f"    return {_values('self', fields)} == {_values('other', fields)}",
    ]


def _values(of: str, fields: list[Field]) -> str:
    return "(" + "".join(f"{of}.{field.name}, " for field in fields) + ")"
