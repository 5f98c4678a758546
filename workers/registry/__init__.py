"""Registries by URL scheme. `watch` and `commands` are generators: close them (`aclosing`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.in_redis import connect
from workers.registry.base import (
    EXPIRY_S,
    Command,
    Registry,
    RegistryUnavailable,
    Verb,
)
from workers.registry.in_memory import MemoryRegistry
from workers.registry.in_redis import RedisRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

    from workers.clock import Clock

__all__ = [
    "EXPIRY_S",
    "REGISTRIES",
    "Command",
    "MemoryRegistry",
    "RedisRegistry",
    "Registry",
    "RegistryUnavailable",
    "Verb",
    "open_registry",
]


def _in_memory(_url: str, _secret: str, clock: Clock) -> Registry:
    return MemoryRegistry(clock)


def _in_redis(url: str, secret: str, _clock: Clock) -> Registry:
    return RedisRegistry(connect(url), secret)


REGISTRIES: dict[str, Callable[[str, str, Clock], Registry]] = {
    "memory": _in_memory,
    "redis": _in_redis,
    "rediss": _in_redis,
    "unix": _in_redis,
    "redis+sentinel": _in_redis,
}


def open_registry(url: str, cluster_secret: str, clock: Clock) -> Registry:
    """The registry behind `url`; nothing is connected yet.

    Raises:
        ValueError: no registry speaks this scheme.
    """
    scheme = url.partition(":")[0]
    if scheme not in REGISTRIES:
        raise ValueError(f"no registry for {scheme}://, only for {', '.join(REGISTRIES)}")
    return REGISTRIES[scheme](url, cluster_secret, clock)
