"""What every command prints with: tables for people, JSON for tools, progress on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click
import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LARGE: Final = 1000.0  # whose whole digits all count

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for tools.")


def print_json(value: Any) -> None:
    """Write `value` as indented JSON to stdout."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    click.echo(orjson.dumps(value, option=options, default=str).decode())


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table to stdout, cells as `readable` has them; numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold")
    body = [[readable(cell) for cell in row] for row in rows]
    for index, name in enumerate(columns):
        numeric = all(_is_number(row[index]) for row in body if row[index])
        table.add_column(name, justify="right" if body and numeric else "left", overflow="fold")
    for row in body:
        table.add_row(*row)
    # A pipe has no width: wide enough that no cell is folded there.
    console = Console()
    Console(width=None if console.is_terminal else 240).print(table)


def readable(cell: Any) -> str:
    """A value as people read it: four digits of a fraction, no Python punctuation."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, list | tuple):
        return ", ".join(map(readable, cell))
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < _LARGE else f"{cell:.1f}"
    if isinstance(cell, Mapping):
        return ", ".join(f"{key}: {readable(value)}" for key, value in cell.items())
    return str(cell)


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("%x"))
    except ValueError:
        return False
    return True
