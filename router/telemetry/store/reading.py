"""What stands in the hashes of the stats store, checked: nothing impossible leaves here; pure.

Anybody may have written to Redis: an operator's hand, a broken backup, another version. One number
that is not one (nan) would spread to every forecast of a model, in every gateway, for a month. A
cell with such a number is left out, and the readers say how many were.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import orjson

from router.telemetry.stats import Moments
from router.telemetry.store.base import FARTHEST, CellName, Cut, TotalName, are_possible

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTS: Final = ("n", "w", "y", "q")  # n, w, wy, wyy of a cell, the first letter of its fields
_HASH: Final = re.compile(r"[ed]:[0-9]{1,12}")  # an epoch or a day
_LARGEST_SUM: Final = 1e18
_LARGEST_FACTOR: Final = 1e6

Cells = dict[CellName, Moments]


def cell_field(cell: CellName) -> str:
    """A cell's name in a hash, without the letter of the part."""
    return f"{cell.table}|{cell.key}"


def read_cells(fields: Mapping[bytes, bytes]) -> tuple[Cells, int]:
    """The cells of an epoch or a day, and how many were left out."""
    sums: dict[str, list[float]] = {}
    for name, value in fields.items():
        text = name.decode(errors="replace")
        part = PARTS.index(text[0]) if text[:1] in PARTS else -1
        if "|" in text and part >= 0:
            sums.setdefault(text[1:], [0.0] * len(PARTS))[part] = _number(value)
        else:
            sums[text] = [math.nan]
    found = {_read_field(field): _moments(values) for field, values in sums.items()}
    cells = {cell: moments for cell, moments in found.items() if moments is not None}
    return cells, len(sums) - len(cells)


def read_cuts(
    cuts: Mapping[bytes, bytes], moves: Mapping[bytes, bytes]
) -> tuple[dict[CellName, Cut], int]:
    """Where the pasts of cells end, and how many cuts were left out."""
    found = {}
    for name, value in cuts.items():
        cut = _read_cut(value, moves.get(name, b"[0.0, 0.0]"))
        if cut is not None:
            found[_read_field(name.decode(errors="replace"))] = cut
    return found, len(cuts) - len(found)


def read_versions(fields: Mapping[bytes, bytes]) -> tuple[dict[str, bytes], int]:
    """How often each hash was written, and how many names are of none."""
    texts = {name.decode(errors="replace"): value for name, value in fields.items()}
    found = {name: value for name, value in texts.items() if _HASH.fullmatch(name)}
    return found, len(fields) - len(found)


def read_total_name(name: bytes) -> TotalName | None:
    """What a hash of totals is of; None for what is no name."""
    try:
        model, workload_class, mode = orjson.loads(name)
    except (TypeError, ValueError):
        return None
    names = (model, workload_class, mode)
    return TotalName(*names) if all(isinstance(one, str) for one in names) else None


def read_sums(fields: Mapping[bytes, bytes]) -> tuple[dict[str, float], int]:
    """Plain totals, and how many were left out."""
    sums = {name.decode(errors="replace"): _number(value) for name, value in fields.items()}
    found = {name: value for name, value in sums.items() if 0.0 <= value <= _LARGEST_SUM}
    return found, len(fields) - len(found)


def _read_field(field: str) -> CellName:
    table, _, text = field.partition("|")
    return CellName(table, text)


def _number(value: bytes) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def _moments(values: list[float]) -> Moments | None:
    if len(values) != len(PARTS):
        return None
    moments = Moments(*values)
    return moments if are_possible(moments) else None


def _read_cut(value: bytes, move: bytes) -> Cut | None:
    try:
        epoch, factor, *amounts = map(float, orjson.loads(value))
        jump, moved = map(float, orjson.loads(move))
        base = _moments(amounts)
        sound = 0.0 <= factor <= _LARGEST_FACTOR and max(abs(jump), abs(moved)) <= FARTHEST
        return Cut(int(epoch), factor, base, jump, moved) if base is not None and sound else None
    except (TypeError, ValueError, OverflowError):
        return None
