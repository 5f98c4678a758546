"""The registry that agents on many hosts and several gateways share.

Keys: `specroute:worker:NAME` (the sealed record, expiring), `specroute:workers` (a set of names, so
that listing needs no SCAN), `specroute:writable` (written by whoever watches, never read).
Channels: `specroute:changed` (a name) and `specroute:commands` (a sealed command). Expiry is Redis'
own, so the clocks of the hosts need not agree on anything.
"""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar, cast

import structlog

from workers.in_redis import PubSub, Redis, key, outage_as
from workers.keys import SealBroken, seal, unseal
from workers.record import WorkerRecord
from workers.registry.base import EXPIRY_S, POLL_S, Command, RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
    )

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

_NAMES = key("workers")
_CHANGED, _COMMANDS = key("changed"), key("commands")
_WRITABLE = key("writable")
_RECORD, _COMMAND = "record", "command"  # purposes of seals


class RedisRegistry:
    """Records and commands sealed with the cluster secret; strangers' ones are left out."""

    def __init__(self, client: Redis, cluster_secret: str, *, poll_s: float = POLL_S) -> None:
        self._client = client
        self._secret = cluster_secret
        self._poll_s = poll_s

    async def publish(self, record: WorkerRecord) -> None:
        """Store the sealed record and tell watchers."""
        await self._store(record, notify=True)

    async def heartbeat(self, record: WorkerRecord) -> None:
        """Store the sealed record for another EXPIRY_S seconds."""
        await self._store(record, notify=False)

    async def remove(self, name: str) -> None:
        """Delete the record and tell watchers."""
        with outage_as(RegistryUnavailable):
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.delete(key("worker", name))
                pipe.srem(_NAMES, name)
                pipe.publish(_CHANGED, name)
                await pipe.execute()

    async def list(self) -> tuple[WorkerRecord, ...]:
        """Every record that has not expired and bears our seal, ordered by name."""
        with outage_as(RegistryUnavailable):
            names = await _members(self._client, _NAMES)  # bytes: anything may be in there
            keys = [key("worker", "").encode() + name for name in names]
            values = await self._client.mget(keys) if names else []
            await self._forget(name for name, value in zip(names, values, strict=True) if not value)
        records = (self._open(value) for value in values if value)
        return tuple(sorted((r for r in records if r is not None), key=lambda r: r.name))

    async def watch(self) -> AsyncGenerator[tuple[WorkerRecord, ...], None]:
        """The list now, after each change, and at least every `poll_s`.

        A Redis that takes no writes (full, read-only) is as good as away: the records in it expire
        though their agents live.
        """
        async with self._subscribed(_CHANGED) as inbox:
            while True:
                await self._try_to_write()
                yield await self.list()
                await self._next_message(inbox)
                with outage_as(RegistryUnavailable):  # one list answers a burst of changes
                    await _empty(inbox)

    async def send(self, command: Command) -> int:
        """Publish the sealed command; the number of agents that were listening."""
        with outage_as(RegistryUnavailable):
            sealed = seal(self._secret, _COMMAND, command.dumps())
            return int(await self._client.publish(_COMMANDS, sealed))

    async def commands(self) -> AsyncGenerator[Command, None]:
        """Orders from now on that bear our seal."""
        async with self._subscribed(_COMMANDS) as inbox:
            while True:
                data = await self._next_message(inbox)
                command = self._read_command(data) if data is not None else None
                if command is not None:
                    yield command

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def _store(self, record: WorkerRecord, *, notify: bool) -> None:
        sealed = seal(self._secret, _RECORD, record.dumps())
        with outage_as(RegistryUnavailable):
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(key("worker", record.name), sealed, px=_ms(EXPIRY_S))
                pipe.sadd(_NAMES, record.name)
                if notify:
                    pipe.publish(_CHANGED, record.name)
                await pipe.execute()

    async def _try_to_write(self) -> None:
        with outage_as(RegistryUnavailable):
            await self._client.set(_WRITABLE, b"1", px=_ms(EXPIRY_S))

    async def _forget(self, names: Iterable[bytes]) -> None:
        gone = list(names)
        if gone:
            await self._client.srem(_NAMES, *gone)

    def _open(self, sealed: bytes | str) -> WorkerRecord | None:
        data = sealed if isinstance(sealed, bytes) else sealed.encode()
        return _read(lambda: WorkerRecord.loads(unseal(self._secret, _RECORD, data)))

    def _read_command(self, sealed: bytes) -> Command | None:
        return _read(lambda: Command.loads(unseal(self._secret, _COMMAND, sealed)))

    @asynccontextmanager
    async def _subscribed(self, channel: str) -> AsyncIterator[PubSub]:
        inbox: PubSub = self._client.pubsub(ignore_subscribe_messages=True)
        try:
            with outage_as(RegistryUnavailable):
                await inbox.subscribe(channel)
            yield inbox
        finally:
            await inbox.aclose()  # type: ignore[no-untyped-call]

    async def _next_message(self, inbox: PubSub) -> bytes | None:
        """The next message's data, or None after `poll_s` without one."""
        with outage_as(RegistryUnavailable):
            message = await inbox.get_message(timeout=self._poll_s)
        return None if message is None else bytes(message["data"])


async def _members(client: Redis, name: str) -> tuple[bytes, ...]:
    return tuple(sorted(await cast("Awaitable[set[bytes]]", client.smembers(name))))


async def _empty(inbox: PubSub) -> None:
    while await inbox.get_message(timeout=0.0) is not None:
        pass


def _read(reader: Callable[[], _T]) -> _T | None:
    try:
        return reader()
    except SealBroken as error:
        log.warning("message_refused", reason=str(error))
    except ValueError as error:
        log.warning("message_unreadable", reason=str(error))
    return None


def _ms(seconds: float) -> int:
    return math.ceil(seconds * 1000)
