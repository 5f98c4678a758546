"""Local token buckets per key: requests and tokens a minute.

Of several gateways each holds a share; `router.access.shares` moves what is left between them.
"""

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

    __slots__ = ("_at", "_level", "capacity", "flow", "per_minute", "rate", "wanted")

    def __init__(self, per_minute: float, now: float) -> None:
        self.per_minute = per_minute
        self.capacity = max(1.0, per_minute)
        self.rate = per_minute / _MINUTE  # units per second
        self.flow = 1.0  # share of the rate that flows in here; 0 while it comes as grants
        self.wanted = 0.0  # units asked for since `report`
        self._level = self.capacity
        self._at = now

    def wait_for(self, amount: float, now: float) -> float:
        """Seconds until `amount` is there (0: now). More than the capacity needs a full bucket."""
        self._fill(now)
        self.wanted += amount
        missing = min(amount, self.capacity) - self._level
        if missing <= 0:
            return 0.0
        return missing / self.rate if self.rate > 0 else _MINUTE

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, below zero if need be: what was spent was spent."""
        self._fill(now)
        self._level = min(self.capacity, self._level - amount)

    def report(self, now: float) -> tuple[float, float]:
        """The level, and how much was asked for since the last report."""
        self._fill(now)
        wanted, self.wanted = self.wanted, 0.0
        return self._level, wanted

    def grant(self, change: float) -> None:
        """Take over `change` units from the others' share, or hand them over if negative."""
        self._level += change

    def _fill(self, now: float) -> None:
        gained = (now - self._at) * self.rate * self.flow
        if gained > 0:
            self._level = max(self._level, min(self.capacity, self._level + gained))
        self._at = now


class RateLimiter:
    """Buckets by key label; keys without limits cost a dictionary lookup."""

    def __init__(self, clock: Clock, entries: Iterable[KeyEntry] = ()) -> None:
        self._clock = clock
        self._requests: dict[str, Bucket] = {}
        self._tokens: dict[str, Bucket] = {}
        self.replace(entries)

    def replace(self, entries: Iterable[KeyEntry]) -> None:
        """Limit these keys from now on; a limit that stays keeps what was spent of it."""
        known = tuple(entries)
        requests = {e.label: e.requests_per_minute for e in known}
        tokens = {e.label: e.tokens_per_minute for e in known}
        self._requests = self._renewed(self._requests, requests)
        self._tokens = self._renewed(self._tokens, tokens)

    def buckets(self) -> dict[str, Bucket]:
        """Every bucket by a name that all gateways give it."""
        named = {f"requests:{label}": bucket for label, bucket in self._requests.items()}
        return named | {f"tokens:{label}": bucket for label, bucket in self._tokens.items()}

    def _renewed(
        self, old: dict[str, Bucket], limits: dict[str, float | None]
    ) -> dict[str, Bucket]:
        now = self._clock.monotonic()
        renewed: dict[str, Bucket] = {}
        for label, limit in limits.items():
            if limit is not None:
                bucket = old.get(label)
                same = bucket is not None and bucket.per_minute == limit
                renewed[label] = bucket if bucket is not None and same else Bucket(limit, now)
        return renewed

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
