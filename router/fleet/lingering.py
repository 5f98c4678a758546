"""Slots whose client has left while the worker may still be busy with them.

A worker notices a closed stream within about a second. A plain request it may not notice at all
while anything else happens, so there the slot counts as taken until the worker shows it idle.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from router.fleet.live import Reservation
    from workers.record import WorkerRecord

    BusySlots = Callable[[WorkerRecord], Awaitable[int | None]]

NOTICE_S: Final = 1.0  # llama-server looks once a second whether a stream's client is still there
PROBE_S: Final = 3.0  # each look restarts the worker's own one-second wait, so not more often
GIVE_UP_S: Final = 600.0


class Lingering:
    """Releases such slots in time; `run` is one task."""

    def __init__(self, busy_slots: BusySlots) -> None:
        """`busy_slots` asks a worker how many slots it processes; None when it does not say."""
        self._busy_slots = busy_slots
        self._unsure: dict[Reservation, float] = {}
        self._wake = asyncio.Event()

    def hold(self, reservation: Reservation, *, was_stream: bool) -> None:
        """Give the slot back when the worker will have noticed."""
        loop = asyncio.get_running_loop()
        if was_stream:
            loop.call_later(NOTICE_S, reservation.release)
        else:
            self._unsure[reservation] = loop.time() + GIVE_UP_S
            self._wake.set()

    async def run(self) -> None:
        """Look after the unsure ones for ever."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(PROBE_S)
            await self.look()
            if not self._unsure:
                self._wake.clear()

    async def look(self) -> None:
        """Ask each worker concerned once, and release what it is no longer busy with."""
        for record in {r.worker: r.record for r in self._unsure}.values():
            busy = await self._busy_slots(record)
            held = [r for r in self._unsure if r.worker == record.name]
            if busy is None or not held:
                continue
            # Slots that are held but not busy can only be those that were left.
            spare = held[0].in_flight_on_worker() - busy
            for reservation in held[: max(0, spare)]:
                self._drop(reservation)
        now = asyncio.get_running_loop().time()
        for reservation in [r for r, until in self._unsure.items() if now >= until]:
            self._drop(reservation)

    def _drop(self, reservation: Reservation) -> None:
        del self._unsure[reservation]
        reservation.release()
