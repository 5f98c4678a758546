"""Carries the registry into the Fleet, in the background, and outlives every outage of Redis."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import structlog

from workers.registry.base import EXPIRY_S, RegistryUnavailable

if TYPE_CHECKING:
    from router.fleet.live import Fleet
    from workers.clock import Clock
    from workers.registry.base import Registry

log = structlog.get_logger(__name__)

RETRY_S: Final = 1.0


class Watch:
    """One task; `reachable` says whether the registry answered last."""

    def __init__(self, registry: Registry, fleet: Fleet, clock: Clock) -> None:
        self._registry = registry
        self._fleet = fleet
        self._clock = clock
        self.reachable = False
        self._lost_at: float | None = None
        self._back_at: float | None = None

    async def run(self) -> None:
        """Update the fleet for ever; on an outage the last known workers stay."""
        while True:
            try:
                async with aclosing(self._registry.watch()) as listings:
                    async for records in listings:
                        self._reached()
                        self._fleet.update(records, keep_missing=self._settling())
            except RegistryUnavailable as error:
                self._lost(error)
            await asyncio.sleep(RETRY_S)

    def _reached(self) -> None:
        if not self.reachable:
            self.reachable = True
            if self._lost_at is not None:
                self._back_at = self._clock.monotonic()
                log.info("registry_back")

    def _lost(self, error: RegistryUnavailable) -> None:
        if self.reachable or self._lost_at is None:
            log.warning("registry_unreachable", error=str(error))
        self.reachable = False
        self._lost_at = self._clock.monotonic()

    def _settling(self) -> bool:
        """A Redis that comes back empty must not empty the fleet before agents have reported."""
        back = self._back_at
        return back is not None and self._clock.monotonic() - back < EXPIRY_S
