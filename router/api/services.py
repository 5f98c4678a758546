"""What the endpoints beside the hot path may use; `router.app` puts it together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from router.access import Admission
    from router.api.edge import Edge
    from router.api.figures import Figures
    from router.fleet import Fleet, Reservation
    from workers.clock import Clock
    from workers.registry.base import Registry


class Viewer(Protocol):
    """One reader of the decision feed."""

    async def next(self) -> dict[str, Any]: ...


class PolicyControl(Protocol):
    """The policy in use, and how an operator changes it."""

    def describe(self) -> dict[str, Any]: ...

    def change(self, wanted: dict[str, Any]) -> None:
        """Raises BadRequest when there is no such policy or setting."""
        ...


class Connectivity(Protocol):
    """Whether the registry answers."""

    @property
    def reachable(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Services:
    """One gateway's objects, as its endpoints see them."""

    edge: Edge
    fleet: Fleet
    admission: Admission[Reservation]
    registry: Registry
    connectivity: Connectivity
    uses_redis: bool
    clock: Clock
    metrics_text: Callable[[], bytes]
    figures: Figures
    watch_decisions: Callable[[], AbstractContextManager[Viewer]]
    policy: PolicyControl
    dashboard_url: str | None = None
    version: str = ""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
