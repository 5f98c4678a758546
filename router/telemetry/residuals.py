"""What is read from how far answers are off: whether a cell changed, and how much they scatter."""

from __future__ import annotations

from typing import Final

_ANSWERS: Final = 100.0  # that the mean goes back
_USUAL: Final = 1.3  # above what chance makes of so many answers that scatter as supposed
_MOST: Final = 16.0  # squared standard deviations that one answer counts at most


class Run:
    """One side of a CUSUM since it was last 0: its sum, and how far off those answers were."""

    __slots__ = ("answers", "offs", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self.answers = 0
        self.offs = 0.0

    def follow(self, drift: float, off: float) -> None:
        """Enter one answer."""
        self.total += drift
        if self.total <= 0.0:
            self.total, self.answers, self.offs = 0.0, 0, 0.0
        else:
            self.answers += 1
            self.offs += off


class Scatter:
    """Whether answers scatter more than a table supposes, as beside a busy neighbour they do.

    Taken for more than they are, a few unlucky answers hide the better worker for a long time.
    """

    __slots__ = ("_mean", "excess")

    def __init__(self) -> None:
        self._mean = 1.0
        self.excess = 1.0
        """By what the noise variance is to be multiplied; 1 while answers are as supposed."""

    def follow(self, square: float) -> None:
        """Enter one answer's squared deviation in units of its supposed variance."""
        self._mean += (min(square, _MOST) - self._mean) / _ANSWERS
        self.excess = max(1.0, self._mean / _USUAL)
