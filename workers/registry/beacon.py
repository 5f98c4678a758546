"""Shows a host's workers as two files in a folder, for probes that run a command (the kubelet's).

`alive` is touched with every heartbeat; `ready` exists while the host serves: some worker does, and
none is still on its way up. A file costs a probe a millisecond, where asking Redis from a fresh
interpreter would cost more than the agent itself. Counterpart: the probes of k8s/chart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.state import WorkerState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from workers.record import WorkerRecord
    from workers.registry.base import Command, Registry

ALIVE, READY = "alive", "ready"

_ON_THE_WAY = (WorkerState.STARTING, WorkerState.LOADING)


class Beacon:
    """A Registry that passes everything on, and shows what it is told. Raises what the other does.

    The files are written first, so that they are right while the registry is away.
    """

    def __init__(self, registry: Registry, folder: Path) -> None:
        """`folder` is made where it is missing; what an earlier run left there is not believed.

        Raises:
            OSError: it cannot be written.
        """
        self._registry = registry
        self._states: dict[str, WorkerState] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._alive, self._ready = folder / ALIVE, folder / READY
        self._ready.unlink(missing_ok=True)

    async def publish(self, record: WorkerRecord) -> None:
        """Show, then store."""
        self._note(record)
        await self._registry.publish(record)

    async def heartbeat(self, record: WorkerRecord) -> None:
        """Show, then store."""
        self._note(record)
        await self._registry.heartbeat(record)

    async def remove(self, name: str) -> None:
        """Show, then forget."""
        self._states.pop(name, None)
        self._show()
        await self._registry.remove(name)

    async def list(self) -> tuple[WorkerRecord, ...]:
        """The registry's."""
        return await self._registry.list()

    def watch(self) -> AsyncGenerator[tuple[WorkerRecord, ...], None]:
        """The registry's."""
        return self._registry.watch()

    async def send(self, command: Command) -> int:
        """The registry's."""
        return await self._registry.send(command)

    def commands(self) -> AsyncGenerator[Command, None]:
        """The registry's."""
        return self._registry.commands()

    async def aclose(self) -> None:
        """The host serves no more."""
        self._ready.unlink(missing_ok=True)
        await self._registry.aclose()

    def beat(self) -> None:
        """The host lives, though it may have no worker just now."""
        self._alive.touch()

    def _note(self, record: WorkerRecord) -> None:
        self._states[record.name] = record.state
        self.beat()
        self._show()

    def _show(self) -> None:
        states = self._states.values()
        serves = any(state.serves for state in states)
        if serves and not any(state in _ON_THE_WAY for state in states):
            self._ready.touch()
        else:
            self._ready.unlink(missing_ok=True)
