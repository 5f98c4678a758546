"""How busy a host was over a time: the integral of its requests in flight, by seconds."""

from __future__ import annotations


class HostLoad:
    """Requests in flight now, and request-seconds since ever. Times are monotonic seconds."""

    __slots__ = ("_area", "_since", "count")

    def __init__(self) -> None:
        self.count = 0
        self._area = 0.0
        self._since = 0.0

    def set(self, count: int, now: float) -> None:
        """From now on so many are in flight."""
        self._area = self.area(now)
        self._since = now
        self.count = count

    def area(self, now: float) -> float:
        """Request-seconds up to now; the difference of two over their time is the mean load."""
        return self._area + self.count * (now - self._since)
