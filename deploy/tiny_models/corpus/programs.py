"""Code answers: template functions and classes, functions over records, SQL, the library."""
# ruff: noqa: E501, SIM905 - word lists and templates read better unbroken.

from __future__ import annotations

import ast
import re
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from corpus import words
from corpus.snippets import CLASSES, SNIPPETS
from corpus.spin import Spinner

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

FIRST = ("n", "x", "value", "number")
LISTY = ("numbers", "items", "values", "data", "elements")
TEXTY = ("text", "s", "string", "line")
ASK = "{Write|Create|Give me|Implement|Show me|Please write|Can you write|I need|Make|Define|Code} {a|one|a small|a short|a simple} {Python function|python function|function in Python|Python 3 function} {that|which} <what>{.||, please.| Only code.|}"
ASK_RU = "{Напиши|Создай|Сделай|Дай|Реализуй|Покажи|Пожалуйста, напиши|Нужна} {функцию|функцию на Python|функцию на питоне|небольшую функцию на Python}, которая <what>{.|}"
MODULES = (
    "textwrap shlex bisect heapq statistics fractions calendar string random colorsys copy glob fnmatch stat filecmp "
    "posixpath genericpath functools contextlib collections/__init__ json/decoder json/encoder csv configparser "
    "datetime numbers operator reprlib pprint enum types queue sched threading tempfile shutil pathlib difflib "
    "html/__init__ html/parser urllib/parse ipaddress base64 uuid secrets hmac dataclasses graphlib argparse getopt "
    "logging/__init__ inspect ast tokenize linecache traceback warnings weakref abc keyword cmd optparse gettext locale"
).split()


class Code:
    """Every method returns (prompt, answer, plan)."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.spin = rng, Spinner(words.RULES, rng)
        self.library = list(self.stdlib())

    def function(self) -> tuple[str, str, str]:
        rng = self.rng
        name, what, what_ru, body = rng.choice(SNIPPETS)
        x, y = self.arguments(what, body)
        name = (
            name
            if rng.random() < 0.75
            else rng.choice((f"get_{name}", f"my_{name}", f"compute_{name}", f"{name}_of"))
        )
        ru = rng.random() < 0.35
        said = self.spin(what_ru if ru else what)
        ask = self.spin(ASK_RU if ru else ASK, {"what": said})
        if rng.random() < 0.12:
            ask = self.spin("{Write|Implement|Show|Create} " + name + " in {Python|python}{.|}")
        elif rng.random() < 0.15:
            ask += self.spin(" {Call it|Name it} ") + name + "."
        body = rename(body, name, x, y)
        if rng.random() < 0.45:
            body = documented(body, said[0].upper() + said[1:] + ".")
        if rng.random() < 0.3:
            body += (
                "\n\n\n"
                + f"print({name}({self.sample(x)}{', 2' if y in body.split(')')[0] else ''}))"
            )
        return ask, fence(body), f"Python: {name}"

    def arguments(self, what: str, body: str) -> tuple[str, str]:
        rng = self.rng
        if "list" in what or "matri" in what:
            return rng.choice(LISTY), "other"
        if "string" in what or "text" in what or "sentence" in what:
            return rng.choice(TEXTY), "other"
        if "file" in what or "CSV" in what or "JSON" in what:
            return "path", "other"
        if "graph" in what or "dict" in what:
            return rng.choice(("graph", "data", "mapping")), "other"
        pair = ("a", "b") if "Y" in body else (rng.choice(FIRST), "b")
        return pair

    def sample(self, x: str) -> str:
        if x in LISTY:
            return str(self.rng.sample(range(1, 20), 5))
        if x in TEXTY:
            return f'"{self.spin("{hello|level|world|python}")}"'
        return '"data.txt"' if x == "path" else str(self.rng.randint(3, 20))

    def over_records(self) -> tuple[str, str, str]:
        """Functions over a list of things, so that an unknown noun still finds a shape."""
        rng = self.rng
        thing = rng.choice([k for k in words.SCHEMAS if k not in ("thing", "weather", "config")])
        if rng.random() < 0.4:
            thing = self.spin("<object>")
        keys = [
            k
            for k, v in words.SCHEMAS.get(thing, words.SCHEMAS["thing"]).items()
            if not isinstance(v, list)
        ]
        key, many = rng.choice(keys), thing + "s"
        ru = rng.random() < 0.3
        shapes = {
            f"sort_{many}": (
                f"sorts a list of {many} by {key}",
                f"сортирует список ({many}) по полю {key}",
                f'def F({many}):\n    return sorted({many}, key=lambda {thing}: {thing}["{key}"])',
            ),
            f"filter_{many}": (
                f"filters a list of {many} by {key}",
                f"отбирает ({many}) по полю {key}",
                f'def F({many}, {key}):\n    result = []\n    for {thing} in {many}:\n        if {thing}["{key}"] == {key}:\n            result.append({thing})\n    return result',
            ),
            f"group_{many}": (
                f"groups {many} by {key}",
                f"группирует ({many}) по полю {key}",
                f'def F({many}):\n    groups = {{}}\n    for {thing} in {many}:\n        groups.setdefault({thing}["{key}"], []).append({thing})\n    return groups',
            ),
            f"find_{thing}": (
                f"finds a {thing} by {key}",
                f"находит {thing} по полю {key}",
                f'def F({many}, {key}):\n    for {thing} in {many}:\n        if {thing}["{key}"] == {key}:\n            return {thing}\n    return None',
            ),
            f"total_{key}": (
                f"sums the {key} of all {many}",
                f"складывает {key} всех ({many})",
                f'def F({many}):\n    total = 0\n    for {thing} in {many}:\n        total += {thing}["{key}"]\n    return total',
            ),
            f"count_{many}": (
                f"counts {many} by {key}",
                f"считает ({many}) по полю {key}",
                f'def F({many}):\n    counts = {{}}\n    for {thing} in {many}:\n        {key} = {thing}["{key}"]\n        counts[{key}] = counts.get({key}, 0) + 1\n    return counts',
            ),
            f"print_{many}": (
                f"prints all {many}",
                f"печатает все ({many})",
                f'def F({many}):\n    for {thing} in {many}:\n        print({thing}["{key}"])',
            ),
            f"max_{key}": (
                f"finds the {thing} with the highest {key}",
                f"находит {thing} с наибольшим {key}",
                f'def F({many}):\n    return max({many}, key=lambda {thing}: {thing}["{key}"])',
            ),
        }
        name, (what, what_ru, body) = rng.choice(list(shapes.items()))
        ask = self.spin(ASK_RU, {"what": what_ru}) if ru else self.spin(ASK, {"what": what})
        body = body.replace("F(", f"{name}(")
        if rng.random() < 0.4:
            body = documented(body, what.capitalize() + ".")
        return ask, fence(body), f"Python: {name}"

    def classes(self) -> tuple[str, str, str]:
        rng = self.rng
        ru = rng.random() < 0.3
        if rng.random() < 0.45:
            what, what_ru, body = rng.choice(CLASSES)
        else:
            what, what_ru, body = self.record_class()
        ask = self.spin(
            "{Напиши|Создай|Реализуй} класс {на Python |}{для|:} <t>{.|}"
            if ru
            else "{Write|Create|Implement|Define|Give me} a {Python class|class in Python} {for|representing|that represents|implementing|modelling} <t>{.|}",
            {"t": what_ru if ru else what},
        )
        return ask, fence(body), "Python: class"

    def record_class(self) -> tuple[str, str, str]:
        rng = self.rng
        thing = rng.choice([k for k in words.SCHEMAS if k != "thing"])
        fields = words.SCHEMAS[thing]
        title = words.TITLES_RU[thing]
        if rng.random() < 0.4:
            thing = title = self.spin("<object>")
            fields = words.SCHEMAS["thing"]
        keys = sorted(rng.sample(list(fields), min(4, len(fields))), key=list(fields).index)
        kind = thing.capitalize()
        if rng.random() < 0.5:
            hints = {k: hint(fields[k]) for k in keys}
            body = "from dataclasses import dataclass\n\n\n@dataclass\n" + f"class {kind}:\n"
            body += "\n".join(f"    {k}: {h}" for k, h in hints.items())
        else:
            body = f"class {kind}:\n    def __init__(self, {', '.join(keys)}):\n"
            body += "\n".join(f"        self.{k} = {k}" for k in keys)
            body += f'\n\n    def __repr__(self):\n        return f"{kind}({{self.{keys[0]}}})"'
        return f"a {thing}", title, body

    def sql(self) -> tuple[str, str, str]:
        rng = self.rng
        name = rng.choice([k for k in words.SCHEMAS if k != "thing"])
        keys = [k for k, v in words.SCHEMAS[name].items() if not isinstance(v, list)]
        ru = rng.random() < 0.3
        if rng.random() < 0.5:
            columns = ["id INTEGER PRIMARY KEY"] + [
                f"{k} {sql_type(words.SCHEMAS[name][k])}" for k in keys if k != "id"
            ]
            body = f"CREATE TABLE {name}s (\n    " + ",\n    ".join(columns) + "\n);"
            ask = (
                "{Напиши|Создай} {SQL-таблицу|таблицу SQL} для <t>"
                if ru
                else "{Write|Create|Give me} {an SQL table|a SQL CREATE TABLE statement|a SQL schema|a database table} for {<t>s|a <t>}{.|}"
            )
        else:
            key, other = rng.sample(keys, 2)
            body = f"SELECT {key}, {other}\nFROM {name}s\nWHERE {key} IS NOT NULL\nORDER BY {other} DESC\nLIMIT {rng.choice((5, 10, 20))};"
            ask = (
                f"{{Напиши|Дай}} SQL-запрос: <t>, поля {key} и {other}"
                if ru
                else f"{{Write|Give me|Show}} {{an SQL query|a SQL query}} {{that selects|to get|for}} {key} and {other} {{of|from}} <t>s{{.|}}"
            )
        return (
            self.spin(ask, {"t": words.TITLES_RU[name] if ru else name}),
            f"```sql\n{body}\n```",
            "SQL",
        )

    def web(self) -> tuple[str, str, str]:
        """A little HTML, JavaScript and shell."""
        thing = self.spin("<object>")
        kind = self.rng.choice(("html", "javascript", "bash"))
        items = list(dict.fromkeys(self.spin("<tag>") for _ in range(4)))
        if kind == "html":
            rows = "\n".join(f"      <li>{i}</li>" for i in items)
            body = f"<!DOCTYPE html>\n<html>\n  <head>\n    <title>{thing.capitalize()}</title>\n  </head>\n  <body>\n    <h1>{thing.capitalize()}</h1>\n    <ul>\n{rows}\n    </ul>\n  </body>\n</html>"
            ask = "{Write|Create|Make} {an HTML page|a simple HTML page|HTML} {about|for} a <t>{.|}"
        elif kind == "javascript":
            body = f'function get{thing.capitalize()}s(items) {{\n  const result = [];\n  for (const item of items) {{\n    if (item.type === "{thing}") {{\n      result.push(item);\n    }}\n  }}\n  return result;\n}}'
            ask = "{Write|Create} a {JavaScript|javascript|JS} function {that returns all <t>s|for <t>s}{.|}"
        else:
            body = f'#!/bin/bash\n\nfor file in *.txt; do\n  if grep -q "{thing}" "$file"; then\n    echo "$file"\n  fi\ndone'
            ask = "{Write|Create} a {bash|shell} script {that finds files with the word <t>|to search for <t>}{.|}"
        return self.spin(ask, {"t": thing}), f"```{kind}\n{body}\n```", kind

    def stdlib(self) -> Iterator[tuple[str, str, str]]:
        """Short documented functions of the Python standard library: (name, first line, source)."""
        root = Path(sysconfig.get_paths()["stdlib"])
        for module in MODULES:
            path = root / f"{module}.py"
            if not path.exists():
                continue
            source = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(source)):
                if not isinstance(node, ast.FunctionDef):
                    continue
                text = ast.get_source_segment(source, node) or ""
                doc = (ast.get_docstring(node) or "").split("\n")[0]
                if doc and 150 < len(text) < 1000 and node.col_offset == 0:
                    yield node.name, doc, text

    def real(self) -> tuple[str, str, str]:
        """A function of the standard library."""
        name, doc, text = self.rng.choice(self.library)
        ask = self.spin("{Write|Show|Implement} the Python function " + name + "{.|: }", {})
        return ask + (doc if ask.endswith(": ") else ""), fence(text), f"Python: {name}"

    def any(self) -> tuple[str, str, str]:
        """A random kind of code."""
        kinds = (self.function, self.over_records, self.classes, self.sql, self.web, self.real)
        return self.rng.choices(kinds, (50, 20, 14, 7, 5, 2))[0]()


def rename(body: str, name: str, x: str, y: str) -> str:
    """Put the real names into a snippet."""
    body = re.sub(r"\bF\b", name, body)
    return re.sub(r"\bY\b", y, re.sub(r"\bX\b", x, body))


def documented(body: str, doc: str) -> str:
    """Insert a docstring after the first def line."""
    head, sep, rest = body.partition("):\n")
    return f'{head}{sep}    """{doc}"""\n{rest}'


def fence(body: str) -> str:
    return f"```python\n{body}\n```"


def hint(kind: object) -> str:
    if isinstance(kind, list):
        return "list[str]"
    if isinstance(kind, tuple) or kind in ("id", "tens", "big", "port"):
        return "int"
    return {"bool": "bool", "price": "float", "rating": "float"}.get(str(kind), "str")


def sql_type(kind: object) -> str:
    return {"int": "INTEGER", "bool": "BOOLEAN", "float": "REAL"}.get(hint(kind), "TEXT NOT NULL")
