"""The one door to Redis of this package: the agents' client and key names, so that both meet there.

Only commands of Redis 6.2 are used.
"""

from __future__ import annotations

from redis.exceptions import ResponseError, WatchError

from workers.in_redis import OUTAGE, Redis, RedisError, connect, key, outage_as

__all__ = [
    "OUTAGE",
    "Redis",
    "RedisError",
    "ResponseError",
    "WatchError",
    "connect",
    "key",
    "outage_as",
]
