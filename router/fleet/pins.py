"""Which tenant's words a worker's slots hold, so that nobody is served from another's cache; pure.

A tenant gets a slot by number and may use what it left there itself. Everything that is not known
for certain (another gateway, a request that cannot name its slot) makes the worker forget whose
slots they were: the next request on each reads its prompt anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Pin:
    """Where a request goes: a slot (None: any), and whether what is cached there is its own."""

    slot: int | None = None
    own: bool = False

    @property
    def fields(self) -> dict[str, object]:
        """What llama-server is told."""
        return {"id_slot": -1 if self.slot is None else self.slot, "cache_prompt": self.own}


class SlotPins:
    """The slots of one worker's process, as one gateway knows them."""

    __slots__ = ("_busy", "_loose", "_owner", "_turn", "_used")

    def __init__(self) -> None:
        self._owner: dict[int, str] = {}
        self._used: dict[int, int] = {}  # slot -> turn of its last use
        self._busy: set[int] = set()
        self._loose = 0  # requests under way whose slot is not known
        self._turn = 0

    def take(self, tenant: str, slots: int, *, certain: bool) -> Pin:
        """A slot for `tenant`; `certain`: it can be named, and nobody else uses this worker."""
        free = [] if self._loose or not certain else list(self._free(slots))
        if not free:
            self._owner.clear()
            self._loose += 1
            return Pin()
        self._turn += 1
        slot = min(free, key=lambda s: (self._owner.get(s) != tenant, self._used.get(s, -1)))
        own = self._owner.get(slot) == tenant
        self._owner[slot], self._used[slot] = tenant, self._turn
        self._busy.add(slot)
        return Pin(slot, own)

    def give_back(self, pin: Pin, *, answered: bool) -> None:
        """The request is over; one without an answer may have left another's words in its slot."""
        if pin.slot is None:
            self._loose -= 1
            self._owner.clear()
            return
        self._busy.discard(pin.slot)
        if not answered:
            self._owner.pop(pin.slot, None)

    def _free(self, slots: int) -> Iterator[int]:
        return (slot for slot in range(slots) if slot not in self._busy)
