"""Local token buckets per key: requests and tokens a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.core import RateLimited

if TYPE_CHECKING:
    from collections.abc import Iterable

    from router.access.keys import KeyEntry
    from workers.clock import Clock

_MINUTE: Final = 60.0


class Bucket:
    """`per_minute` units flow in evenly; at most a minute's worth is kept."""

    __slots__ = ("_at", "_level", "capacity", "rate")

    def __init__(self, per_minute: float, now: float) -> None:
        self.capacity = max(1.0, per_minute)
        self.rate = per_minute / _MINUTE
        self._level = self.capacity
        self._at = now

    def wait_for(self, amount: float, now: float) -> float:
        """Seconds until `amount` is there (0: now). More than the capacity needs a full bucket."""
        self._fill(now)
        missing = min(amount, self.capacity) - self._level
        if missing <= 0:
            return 0.0
        return missing / self.rate if self.rate > 0 else _MINUTE

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, below zero if need be: what was spent was spent."""
        self._fill(now)
        self._level = min(self.capacity, self._level - amount)

    def _fill(self, now: float) -> None:
        self._level = min(self.capacity, self._level + (now - self._at) * self.rate)
        self._at = now


class RateLimiter:
    """Buckets by key label; keys without limits cost a dictionary lookup."""

    def __init__(self, clock: Clock, entries: Iterable[KeyEntry] = ()) -> None:
        self._clock = clock
        now = clock.monotonic()
        self._requests: dict[str, Bucket] = {}
        self._tokens: dict[str, Bucket] = {}
        for entry in entries:
            if entry.requests_per_minute is not None:
                self._requests[entry.label] = Bucket(entry.requests_per_minute, now)
            if entry.tokens_per_minute is not None:
                self._tokens[entry.label] = Bucket(entry.tokens_per_minute, now)

    def acquire(self, key_id: str) -> None:
        """Count one request of the key.

        Raises:
            RateLimited: its minute is used up; `retry_after` seconds until the next may come.
        """
        requests, tokens = self._requests.get(key_id), self._tokens.get(key_id)
        if requests is None and tokens is None:
            return
        now = self._clock.monotonic()
        wait = max(
            requests.wait_for(1.0, now) if requests is not None else 0.0,
            tokens.wait_for(1.0, now) if tokens is not None else 0.0,
        )
        if wait > 0:
            raise RateLimited(f"the key {key_id!r} has used up its minute", retry_after=wait)
        if requests is not None:
            requests.take(1.0, now)

    def spend(self, key_id: str, tokens: float) -> None:
        """Charge the tokens, prompt and answer, of a finished request."""
        bucket = self._tokens.get(key_id)
        if bucket is not None:
            bucket.take(tokens, self._clock.monotonic())
