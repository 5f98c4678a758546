"""What every command prints with: tables for people, JSON for tools, progress on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for tools.")


def print_json(value: Any) -> None:
    """Write `value` as indented JSON to stdout."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    click.echo(orjson.dumps(value, option=options, default=str).decode())


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table to stdout; numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold")
    body = [[("" if cell is None else str(cell)) for cell in row] for row in rows]
    for index, name in enumerate(columns):
        numeric = all(_is_number(row[index]) for row in body if row[index])
        table.add_column(name, justify="right" if body and numeric else "left", overflow="fold")
    for row in body:
        table.add_row(*row)
    # A pipe has no width: wide enough that no cell is folded there.
    console = Console()
    Console(width=None if console.is_terminal else 240).print(table)


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("%x"))
    except ValueError:
        return False
    return True
