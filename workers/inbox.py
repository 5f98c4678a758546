"""What happens to a worker, as messages to its supervisor, and how a life ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from workers.registry.base import Verb

if TYPE_CHECKING:
    from workers.health import Probe


@dataclass(frozen=True, slots=True)
class Exited:
    """A process ended; `pid` tells an old one's message from the present one's."""

    pid: int
    returncode: int


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe is over; None means it failed and the sentence says how."""

    pid: int | None
    probe: Probe | None
    failure: str = ""
    refused: bool = False  # it answered, and with an error: silence may only mean that it is busy


class Internal(Enum):
    """Orders that do not come from outside."""

    STOP = "stop"


Message = Verb | Internal | Exited | Probed


@dataclass(frozen=True, slots=True)
class Ending:
    """How a life ended: by its own exit, by our judgement (`failure`), or by an order (neither)."""

    returncode: int | None = None
    failure: str = ""

    @property
    def ordered(self) -> bool:
        """Whether somebody asked for it."""
        return self.returncode is None and not self.failure
