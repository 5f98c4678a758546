"""The one door to Redis of this package: clients by URL, key names, and the errors of an outage.

Only commands of Redis 6.2 are used, so Valkey and older managed services do as well.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.sentinel import Sentinel
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OUTAGE", "PREFIX", "PubSub", "Redis", "RedisError", "connect", "key", "outage_as"]

PREFIX = "specroute"

# What a client may raise when the server is away; a caller translates it once, at its own seam.
OUTAGE: tuple[type[Exception], ...] = (RedisError, RedisConnectionError, OSError, TimeoutError)

_OPTIONS: dict[str, Any] = {
    "protocol": 2,  # RESP2: what 6.2, Valkey and every proxy speak
    "socket_timeout": 5.0,
    "socket_connect_timeout": 2.0,
    "health_check_interval": 15,
}


@contextmanager
def outage_as(error: type[Exception]) -> Iterator[None]:
    """Raise `error`, the caller's own, for whatever a client raises when the server is away."""
    try:
        yield
    except OUTAGE as outage:
        raise error(f"Redis: {type(outage).__name__}: {outage}") from outage


def key(*parts: str) -> str:
    """A key or channel name of ours: `specroute:part:part`."""
    return ":".join((PREFIX, *parts))


def connect(url: str) -> Redis:
    """A client that connects on first use. Answers are bytes.

    `redis://`, `rediss://` and `unix://` as redis-py reads them, and
    `redis+sentinel://host:port,host:port/MASTER[?db=N&password=P]` for a Sentinel group.

    Raises:
        ValueError: another scheme, or a Sentinel URL without a master's name.
    """
    if url.startswith("redis+sentinel://"):
        return _through_sentinel(url)
    client: Redis = Redis.from_url(url, **_OPTIONS)
    return client


def _through_sentinel(url: str) -> Redis:
    parts = urlsplit(url)
    master = parts.path.strip("/")
    if not master:
        raise ValueError("a redis+sentinel:// URL must name the master: .../MASTER")
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    hosts = [_host_and_port(item) for item in parts.netloc.rpartition("@")[2].split(",")]
    password = query.get("password") or parts.password
    sentinel = Sentinel(hosts, **_OPTIONS)  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(master, db=int(query.get("db", "0")), password=password)
    return client


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.partition(":")
    return host, int(port or "26379")
