"""Tells an agent which of its workers fail requests although they look well.

A server whose /health is fine and whose every chat is a 500 shows nothing to its supervisor: only
who sends requests can know. The supervisor asks it itself before it does anything.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

from workers.registry.base import Command, RegistryUnavailable, Verb

if TYPE_CHECKING:
    from router.fleet.live import Fleet
    from workers.clock import Clock
    from workers.registry.base import Registry

LOOK_S: Final = 1.0
AGAIN_S: Final = 15.0  # before the same worker is told of once more


class Doubts:
    """One task of the gateway."""

    def __init__(self, fleet: Fleet, registry: Registry, clock: Clock) -> None:
        self._fleet = fleet
        self._registry = registry
        self._clock = clock
        self._told: dict[str, float] = {}

    async def run(self) -> None:
        """Look once a second for ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Tell of each doubted worker, if it was not told of a moment ago."""
        now = self._clock.monotonic()
        doubted = self._fleet.doubted()
        self._told = {name: at for name, at in self._told.items() if now - at < AGAIN_S}
        for name in doubted:
            if name in self._told:
                continue
            command = Command(Verb.PROBE, name, self._clock.wall(), secrets.token_hex(16))
            try:
                await self._registry.send(command)
            except RegistryUnavailable:
                return
            self._told[name] = now
