"""Stats stores by URL scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.in_redis import connect
from router.telemetry.store.base import StatsStore, StoreUnavailable
from router.telemetry.store.in_memory import MemoryStatsStore
from router.telemetry.store.in_redis import RedisStatsStore

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "STORES",
    "MemoryStatsStore",
    "RedisStatsStore",
    "StatsStore",
    "StoreUnavailable",
    "open_store",
]


def _in_redis(url: str) -> StatsStore:
    return RedisStatsStore(connect(url))


STORES: dict[str, Callable[[str], StatsStore]] = {
    "memory": lambda _url: MemoryStatsStore(),
    "redis": _in_redis,
    "rediss": _in_redis,
    "unix": _in_redis,
    "redis+sentinel": _in_redis,
}


def open_store(url: str) -> StatsStore:
    """The store behind `url`; nothing is connected yet.

    Raises:
        ValueError: no store speaks this scheme.
    """
    scheme = url.partition(":")[0]
    if scheme not in STORES:
        raise ValueError(f"no stats store for {scheme}://, only for {', '.join(STORES)}")
    return STORES[scheme](url)
