"""Who may ask, and how much: keys, their limits, and the tasks that share both among gateways."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from router.access import KeyRing, RateLimiter
from router.access.key_store import RedisKeys
from router.access.key_watch import KeyWatch
from router.access.shares import Shares
from router.in_redis import connect

if TYPE_CHECKING:
    from router.access import KeyEntry
    from router.settings import Settings
    from workers.clock import Clock


class Lasting(Protocol):
    """A background task with something to close at the end."""

    async def run(self) -> None:
        """Work for ever."""

    async def aclose(self) -> None:
        """Close what it opened."""


@dataclass(frozen=True, slots=True)
class Access:
    """Keys and limits, and what keeps them up to date."""

    ring: KeyRing
    rates: RateLimiter
    lasting: tuple[Lasting, ...]


def build_access(settings: Settings, clock: Clock) -> Access:
    """The access room; nothing is opened yet."""
    ring, rates = KeyRing(settings.all_keys), RateLimiter(clock, settings.all_keys)
    keys, shares = _key_watch(settings, ring, rates), _shares(settings, rates, clock)
    return Access(ring, rates, (*keys, *shares))


def _key_watch(settings: Settings, ring: KeyRing, rates: RateLimiter) -> tuple[KeyWatch, ...]:
    """Keys may be made and revoked meanwhile where they are kept: one KeyWatch, or none."""
    folder, url = settings.state_dir, settings.redis_url
    if folder is None and url is None:
        return ()

    def take_over(entries: tuple[KeyEntry, ...]) -> None:
        ring.replace(entries)
        rates.replace(entries)

    watch = KeyWatch(
        settings.keys,
        take_over,
        file=folder / "keys.json" if folder is not None else None,
        store=RedisKeys(connect(url), settings.cluster_secret) if url is not None else None,
        known=settings.made_keys,
    )
    return (watch,)


def _shares(settings: Settings, rates: RateLimiter, clock: Clock) -> tuple[Shares, ...]:
    if settings.redis_url is None:
        return ()
    return (Shares(connect(settings.redis_url), rates, secrets.token_hex(8), clock),)
