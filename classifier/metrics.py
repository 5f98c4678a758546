"""Figures of a classification: accuracy, macro F1, recall, calibration, confusion; plain Python."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Final

from classifier.classes import CLASSES, WorkloadClass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CALIBRATION_BINS: Final = 15


@dataclass(frozen=True, slots=True)
class Scored:
    """One scored row: the truth, the probabilities by class value, what it may be grouped by."""

    truth: WorkloadClass
    probabilities: Mapping[str, float]
    language: str
    group: str
    ambiguous: bool

    @property
    def predicted(self) -> WorkloadClass:
        """The most probable class."""
        return WorkloadClass(max(self.probabilities, key=self.probabilities.__getitem__))

    @property
    def confidence(self) -> float:
        """The probability of the predicted class."""
        return max(self.probabilities.values())


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of the calibration plot: rows, mean confidence, share correct."""

    n: int
    confidence: float
    accuracy: float


def accuracy(rows: Sequence[Scored]) -> float:
    """Share of rows whose most probable class is the truth; 0 for no rows."""
    return sum(row.predicted is row.truth for row in rows) / len(rows) if rows else 0.0


def confusion(rows: Sequence[Scored]) -> dict[tuple[str, str], int]:
    """Count by (truth, predicted) class values, every pair present."""
    counts = Counter((row.truth.value, row.predicted.value) for row in rows)
    return {(t.value, p.value): counts[(t.value, p.value)] for t in CLASSES for p in CLASSES}


def recall(rows: Sequence[Scored]) -> dict[str, float]:
    """Recall by class value; 0 for a class without rows."""
    table = confusion(rows)
    result = {}
    for c in CLASSES:
        total = sum(table[(c.value, p.value)] for p in CLASSES)
        result[c.value] = table[(c.value, c.value)] / total if total else 0.0
    return result


def f1(rows: Sequence[Scored], workload_class: WorkloadClass) -> float:
    """F1 of one class; 0 if it neither occurs nor is predicted."""
    table = confusion(rows)
    name = workload_class.value
    hit = table[(name, name)]
    total = sum(table[(name, p.value)] for p in CLASSES) + sum(
        table[(t.value, name)] for t in CLASSES
    )
    return 2 * hit / total if total else 0.0


def macro_f1(rows: Sequence[Scored]) -> float:
    """Mean F1 over the classes that occur or are predicted; 0 for no rows."""
    present = {row.truth for row in rows} | {row.predicted for row in rows}
    return sum(f1(rows, c) for c in present) / len(present) if present else 0.0


def calibration(rows: Sequence[Scored], bins: int = CALIBRATION_BINS) -> list[Bin]:
    """Rows by equal widths of confidence, empty bins left out."""
    split: list[list[Scored]] = [[] for _ in range(bins)]
    for row in rows:
        split[min(bins - 1, int(row.confidence * bins))].append(row)
    return [
        Bin(len(part), sum(row.confidence for row in part) / len(part), accuracy(part))
        for part in split
        if part
    ]


def calibration_error(rows: Sequence[Scored], bins: int = CALIBRATION_BINS) -> float:
    """Expected calibration error of the predicted class's probability."""
    return sum(
        part.n * abs(part.confidence - part.accuracy) for part in calibration(rows, bins)
    ) / max(1, len(rows))


def drift(before: Mapping[str, float], now: Mapping[str, float]) -> float:
    """Population stability index of the class mix (shares by class value); 0 is no change, above
    0.2 is usually called a shift."""
    total = 0.0
    for c in CLASSES:
        old, new = max(before.get(c.value, 0.0), 1e-4), max(now.get(c.value, 0.0), 1e-4)
        total += (new - old) * log(new / old)
    return total
