"""What is assumed of a mode before it was measured: mild relative decode speeds, AR = 1.

Source: the prior table of the policy design, from 25 public setups, but for two rows. What it says
of block drafters of a fixed length on prose (0.9) is one machine's; public setups measured 1.7,
1.6, 1.3 and 0.9; of DSpark on code and lists (1.5 there) 1.3, 1.8 and 2.1. The other columns of
both rows were set near the margin drafter's, without figures of their own. Measurement decides;
these only choose the first few requests. Kinds stand in for classes where only a kind is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from classifier.classes import CLASS_OF_KIND

BASE_TOKENS_PER_SECOND: Final = 30.0
"""AR decode speed of an unmeasured machine; cancels in every comparison of workers."""

KEPT_BESIDE_AS_MANY: Final = 0.85
"""Of a request's speed when its batch doubles: between a big GPU (0.9) and a few cores (0.5).

Without it an unmeasured batch seems free, and a second request joins the first one's worker.
"""

Stated = Mapping[str, Mapping[str, float]]
"""Relative decode speeds by mode and class, AR = 1: `routing.priors` of the configuration."""

_MIXED: Final = "mixed"  # a class name the table does not know

_Row = tuple[float, float, float]  # structured, prose, reasoning
_TABLE: Final[Mapping[str, _Row]] = {
    "ar": (1.0, 1.0, 1.0),
    "mtp": (1.5, 1.2, 1.2),
    "eagle3": (1.5, 1.2, 1.2),
    "draft": (1.4, 1.1, 1.1),
    "dspark": (1.7, 1.1, 1.2),
    "dflash-margin": (1.7, 1.2, 1.3),
    "dflash": (1.7, 1.2, 1.25),
    "ngram": (1.0, 0.95, 0.95),
    "luce": (1.7, 1.2, 1.3),
}
_COLUMNS: Final = {"structured": 0, "prose": 1, "reasoning": 2}

_DRAFT_LENGTHS: Final = (
    (-0.22, -0.06, 0.0, 0.03, 0.06, 0.03, 0.0),
    (-0.05, 0.02, 0.0, -0.08, -0.14, -0.19, -0.24),
)
"""ln(speed) of MTP with n_max 1 to 7 over n_max 3: structured text, then any other.

About 0.7 of the mean over the public setups that measured several lengths side by side: code wants
4 to 6, prose 2 to 3.
"""

USUAL_DRAFT_LENGTH: Final = 3
"""Of MTP, where nothing else is stated."""

_LENGTH_SUFFIX: Final = re.compile(r"-n(\d+)(?:-p\d+)?$")

_KEY_SUFFIX: Final = re.compile(r"~n(\d+)$")

_LONG_DOCUMENT: Final = 0.8  # margin drafter, natural language beyond 2K tokens
_LONG_CONTEXT: Final = 0.9  # margin drafter beyond 25-32K tokens
_LOADED: Final = 0.8  # margin drafter with more than one request decoding
_FIXED_LOADED_DOCUMENT: Final = 0.3  # fixed-length drafter, long document, two or more requests


def family(mode: str) -> str:
    """The row of the table a mode belongs to; modes of a family share what texts they like."""
    mode = _LENGTH_SUFFIX.sub("", mode)  # an arm of that mode
    if mode.startswith("dflash"):
        return "dflash-margin" if mode.endswith("margin") else "dflash"
    head = mode.replace("_", "-").split("-")[0]
    return head if head in _TABLE else "mtp"


def workload_class(name: str) -> str:
    """The class of a class or kind name; "mixed" for a name that is neither."""
    if name in _COLUMNS:
        return name
    found = CLASS_OF_KIND.get(name)
    return found.value if found is not None else _MIXED


def stated_speed(stated: Stated, mode: str, class_name: str) -> float | None:
    """What the operator stated of a mode and a class (or of the class of a kind), if anything."""
    row = stated.get(mode)
    if row is None:
        return None
    return row.get(class_name, row.get(workload_class(class_name)))


def relative_speed(
    mode: str, class_name: str, context: int = 0, occupancy: int = 0, *, key: str = ""
) -> float:
    """Prior decode speed of a mode over AR's, in the same context and occupancy buckets.

    `key` is the worker's, which tells the draft length of a mode that leaves it open.
    """
    group = family(mode)
    row = _TABLE[group]
    column = _COLUMNS.get(workload_class(class_name))
    speed = row[column] if column is not None else (row[0] * row[1] * row[2]) ** (1 / 3)
    if group == "mtp":
        speed *= math.exp(_draft_length(draft_length(mode, key), column))
    if not group.startswith("dflash"):
        return speed
    return _under_conditions(group, speed, context, occupancy, natural=column != 0)


def draft_length(mode: str, key: str = "") -> int | None:
    """Tokens that an MTP arm drafts a step, 1 to 7 (longer drafts count as 7); None: not stated.

    A least probability (`-p60`) shortens some drafts; such an arm is still like its length's.

    Args:
        mode: of the arm.
        key: of the worker, which tells the length of a mode that leaves it open.
    """
    if mode == "mtp":
        found = _KEY_SUFFIX.search(key)
    else:
        found = _LENGTH_SUFFIX.search(mode) if mode.startswith("mtp") else None
    return min(max(int(found[1]), 1), 7) if found else None


def _draft_length(length: int | None, column: int | None) -> float:
    """ln of what another draft length than the usual one does to the speed."""
    length = length or USUAL_DRAFT_LENGTH
    structured, other = (row[length - 1] for row in _DRAFT_LENGTHS)
    if column is None:
        return (structured + other) / 2
    return structured if column == 0 else other


def _under_conditions(
    group: str, speed: float, context: int, occupancy: int, *, natural: bool
) -> float:
    if group == "dflash":
        bad = natural and context >= 1 and occupancy >= 1
        return _FIXED_LOADED_DOCUMENT if bad else speed
    if context >= 3:
        speed = min(speed, _LONG_CONTEXT)
    elif natural and context >= 1:
        speed = min(speed, _LONG_DOCUMENT)
    # Speculation pays less the more requests share a batch: half way to the loaded figure.
    return speed if not occupancy else (speed * _LOADED) ** 0.5
