"""How much there was of something over a time: the integral of a count, by seconds."""

from __future__ import annotations


class Load:
    """A count now, and its count-seconds since ever. Times are monotonic seconds."""

    __slots__ = ("_area", "_since", "count")

    def __init__(self) -> None:
        self.count = 0
        self._area = 0.0
        self._since = 0.0

    def set(self, count: int, now: float) -> None:
        """From now on there are so many."""
        self._area = self.area(now)
        self._since = now
        self.count = count

    def area(self, now: float) -> float:
        """Count-seconds up to now; the difference of two over their time is the mean."""
        return self._area + self.count * (now - self._since)
