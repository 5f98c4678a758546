"""Reads measured profiles: one machine, model and engine; cells (task, context, load) x arms."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProfileCell:
    """One kind of request: its name, the requests in flight, and each arm's tokens per second."""

    name: str
    concurrency: int
    speeds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Profile:
    """`common` are the arms measured in every cell; the others only serve where they were."""

    name: str
    cells: tuple[ProfileCell, ...]
    modes: Mapping[str, str]  # by arm
    common: tuple[str, ...]

    @property
    def usable(self) -> bool:
        """Whether there is something to choose: two cells, two arms common to all of them."""
        return len(self.cells) >= 2 and len(self.common) >= 2


class BadProfiles(ValueError):
    """The file is not one of profiles; says which line and why."""


_DRAFT_LENGTH = re.compile(r"\bmtp [nkdb](\d+)\b")
_MARGIN = re.compile(r"\bmargin")
_MOST = 1e6
_COLUMNS = ("profile", "cell", "arm", "mode", "concurrency", "tok_s", "unit")


def read_profiles(path: Path) -> tuple[Profile, ...]:
    """All profiles of a CSV file, in its order; those that are not usable too.

    Raises:
        BadProfiles: a missing column or a value that is no number.
        OSError: the file cannot be read.
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        try:
            missing = [c for c in _COLUMNS if c not in (reader.fieldnames or ())]
            if missing:
                raise BadProfiles(f"{path}: no column {', '.join(missing)}")
            rows = [_checked(path, reader.line_num, row) for row in reader]
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadProfiles(f"{path} is no CSV file in UTF-8: {error}") from error
    groups: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        groups[row.profile].append(row)
    return tuple(_profile(name, group) for name, group in groups.items())


@dataclass(frozen=True, slots=True)
class _Row:
    profile: str
    cell: str
    arm: str
    mode: str
    concurrency: int
    speed: float


def _checked(path: Path, line: int, row: Mapping[str, str]) -> _Row:
    try:
        concurrency = int(float(row["concurrency"] or 1))
        speed = float(row["tok_s"])
    except (TypeError, ValueError, OverflowError) as error:
        raise BadProfiles(f"{path}, line {line}: {error}") from error
    if not 0 < speed <= _MOST or not 1 <= concurrency <= _MOST:
        message = "tok_s and concurrency must be positive, and no more than a million"
        raise BadProfiles(f"{path}, line {line}: {message}")
    if None in (row["profile"], row["cell"], row["arm"], row["mode"]):
        raise BadProfiles(f"{path}, line {line}: fewer fields than columns")
    if row["unit"] == "aggregate":
        speed /= concurrency
    return _Row(row["profile"], row["cell"], row["arm"], row["mode"], concurrency, speed)


def _profile(name: str, rows: Iterable[_Row]) -> Profile:
    cells: dict[str, dict[str, list[_Row]]] = defaultdict(lambda: defaultdict(list))
    modes: dict[str, str] = {}
    for row in rows:
        cells[row.cell][row.arm].append(row)
        modes.setdefault(row.arm, _mode(row.arm, row.mode.replace("_", "-")))
    made = tuple(_cell(cell, arms) for cell, arms in cells.items())
    common = [arm for arm in modes if all(arm in cell.speeds for cell in made)]
    return Profile(name, made, modes, tuple(common))


def _mode(arm: str, mode: str) -> str:
    """The mode with its draft length, where the arm's label states one and no margin cuts it."""
    found = _DRAFT_LENGTH.search(arm)
    return f"{mode}-n{found[1]}" if mode == "mtp" and found and not _MARGIN.search(arm) else mode


def _cell(name: str, arms: Mapping[str, list[_Row]]) -> ProfileCell:
    concurrency = max(row.concurrency for rows in arms.values() for row in rows)
    speeds = {arm: fmean(row.speed for row in rows) for arm, rows in arms.items()}
    return ProfileCell(name, concurrency, speeds)
