"""Linear equations with a symmetric positive definite matrix, for a few dozen unknowns.

The gateway's process does without numpy, whose import costs memory and start-up.
"""

from __future__ import annotations

from math import sqrt
from operator import mul


def solve(rows: list[list[float]], right: list[float]) -> list[float]:
    """x of A x = right by Cholesky's decomposition A = L L'; `rows` become L's.

    Args:
        rows: the lower triangle of A, row i with i + 1 entries.
        right: as many numbers as rows.

    Raises:
        ValueError: A is not positive definite.
    """
    for i, row in enumerate(rows):
        for j in range(i):
            other = rows[j]
            row[j] = (row[j] - sum(map(mul, row[:j], other))) / other[j]
        row[i] = sqrt(row[i] - sum(map(mul, row[:i], row)))
    half: list[float] = []
    for row, value in zip(rows, right, strict=True):
        half.append((value - sum(map(mul, row, half))) / row[-1])
    for i in range(len(rows) - 1, -1, -1):
        half[i] /= rows[i][i]
        for j in range(i):
            half[j] -= rows[i][j] * half[i]
    return half
