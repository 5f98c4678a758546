"""One warning for what was found unreadable in Redis, however often it is read."""

from __future__ import annotations

from typing import Final

import structlog

log = structlog.get_logger(__name__)

_REMEMBERED: Final = 1000  # keys already told of, until all are forgotten


class Oddities:
    """What one reader of Redis has already warned of."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, name: str, reason: str) -> None:
        """Warn, unless that key was told of before."""
        if name in self._told:
            return
        if len(self._told) >= _REMEMBERED:
            self._told.clear()
        self._told.add(name)
        log.warning("redis_unreadable", key=name, reason=reason)

    def left_out(self, name: str, count: int) -> None:
        """Warn of so many entries of a key that were left out, if any were."""
        if count:
            self.tell(name, f"{count} impossible or unreadable entries are left out")
