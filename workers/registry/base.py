"""The seam where agents and gateways meet: who is there, what is wanted, what is ordered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import orjson

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from workers.record import WorkerRecord

EXPIRY_S = 10.0  # without a heartbeat a worker leaves rotation (contract, section 6: registry)
POLL_S = 1.0  # how often `watch` looks without having been told of a change


class RegistryUnavailable(RuntimeError):
    """The registry cannot be reached just now; keep what you have and try again."""


class Verb(StrEnum):
    """What may be ordered. Nothing else travels: never an argv, a path or a key."""

    DRAIN = "drain"
    UNDRAIN = "undrain"
    RESTART = "restart"
    LOAD = "load"
    UNLOAD = "unload"
    PROBE = "probe"  # a gateway's: it fails requests; is it well?

    @property
    def for_operators(self) -> bool:
        """Whether a person may order it."""
        return self is not Verb.PROBE

    @property
    def holds(self) -> bool | None:
        """Whether the worker is out of service from then on until an order; None: as before."""
        return {"drain": True, "undrain": False, "load": False, "restart": False}.get(self.value)


@dataclass(frozen=True, slots=True)
class Command:
    """One order to whoever runs the worker. `issued_at` is wall-clock seconds."""

    verb: Verb
    worker: str
    issued_at: float
    nonce: str  # unique; an agent obeys each once

    def dumps(self) -> bytes:
        """The command as JSON bytes."""
        values = (self.verb.value, self.worker, self.issued_at, self.nonce)
        return orjson.dumps(values)

    @classmethod
    def loads(cls, data: bytes) -> Command:
        """Read `dumps`' bytes.

        Raises:
            ValueError: not a command.
        """
        values = orjson.loads(data)
        if not isinstance(values, list) or len(values) != 4:
            raise ValueError("a command must be [verb, worker, issued_at, nonce]")
        verb, worker, issued_at, nonce = values
        return cls(Verb(verb), str(worker), float(issued_at), str(nonce))


class Registry(Protocol):
    """Every method may raise RegistryUnavailable."""

    async def publish(self, record: WorkerRecord) -> None:
        """Store the record and tell watchers at once: for changes."""
        ...

    async def heartbeat(self, record: WorkerRecord) -> None:
        """Store the record again without waking anybody; it lives EXPIRY_S longer."""
        ...

    async def remove(self, name: str) -> None:
        """Forget a worker and tell watchers; unknown names are fine."""
        ...

    async def list(self) -> tuple[WorkerRecord, ...]:
        """Every living worker, ordered by name."""
        ...

    def watch(self) -> AsyncGenerator[tuple[WorkerRecord, ...], None]:
        """The list now, again after each change, and at least every POLL_S."""
        ...

    async def send(self, command: Command) -> int:
        """Order something; returns how many agents heard it (0: nobody is listening)."""
        ...

    def commands(self) -> AsyncGenerator[Command, None]:
        """Orders as they come, from the first `anext` on; forged and garbled ones are dropped."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...
