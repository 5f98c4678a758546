"""API keys kept in Redis, for gateways on several machines: sealed entries, never the key itself.

One hash, `specroute:keys`, label to entry. The seal is the cluster secret's, so that whoever can
write to Redis cannot let themselves in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import orjson
import structlog

from router.access.keys import entry_of, row_of
from router.in_redis import Redis, key
from workers.keys import seal, unseal

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from router.access.keys import KeyEntry

log = structlog.get_logger(__name__)

_KEYS: Final = key("keys")
_PURPOSE: Final = "api-key"


class RedisKeys:
    """The keys of a cluster. Every method may raise an error of `router.in_redis.OUTAGE`."""

    def __init__(self, client: Redis, cluster_secret: str) -> None:
        self._client = client
        self._secret = cluster_secret

    async def list(self) -> tuple[KeyEntry, ...]:
        """Every entry that bears our seal, by label; strangers' ones are left out and logged."""
        rows = await cast("Awaitable[dict[bytes, bytes]]", self._client.hgetall(_KEYS))
        found = (self._opened(label.decode(), sealed) for label, sealed in sorted(rows.items()))
        return tuple(entry for entry in found if entry is not None)

    async def add(self, entry: KeyEntry) -> bool:
        """Store a new entry; False when the label is taken."""
        sealed = seal(self._secret, _PURPOSE, orjson.dumps(row_of(entry)))
        return bool(await self._client.hsetnx(_KEYS, entry.label, sealed))

    async def remove(self, label: str) -> bool:
        """Forget an entry; False when there is none of that label."""
        return bool(await self._client.hdel(_KEYS, label))

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    def _opened(self, label: str, sealed: bytes) -> KeyEntry | None:
        try:
            entry = entry_of(orjson.loads(unseal(self._secret, _PURPOSE, sealed)), label)
            if entry.label != label:
                raise ValueError("stored under another label")
        except ValueError as error:
            log.warning("key_refused", label=label, reason=str(error))
            return None
        return entry
