"""Keys that are made and revoked while the gateway runs: read again every second, in background.

A file that is damaged or a Redis that is away changes nothing: the last known keys stay.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import structlog

from router.access.keys import read_keys
from router.in_redis import OUTAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from router.access.key_store import RedisKeys
    from router.access.keys import KeyEntry

log = structlog.get_logger(__name__)

LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Made:
    """Keys that `specroute keys` made, by where they are kept."""

    file: tuple[KeyEntry, ...] = ()
    store: tuple[KeyEntry, ...] = ()


def merged(fixed: Iterable[KeyEntry], made: Made) -> tuple[KeyEntry, ...]:
    """One entry per label: the config's, else the file's, else the store's."""
    rows = {entry.label: entry for entry in (*made.store, *made.file, *fixed)}
    return tuple(sorted(rows.values(), key=lambda entry: entry.label))


class KeyWatch:
    """One task. `fixed` keys are the config's; a label of theirs is nobody else's."""

    def __init__(
        self,
        fixed: Iterable[KeyEntry],
        on_change: Callable[[tuple[KeyEntry, ...]], None],
        *,
        file: Path | None = None,
        store: RedisKeys | None = None,
        known: Made | None = None,
    ) -> None:
        """`known` are the keys that were read before the start; `on_change` is given all keys."""
        self._fixed = tuple(fixed)
        self._file = file
        self._store = store
        self._on_change = on_change
        self._made = known or Made()
        self._known = merged(self._fixed, self._made)
        self._trouble = ""

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Read file and store once; tell of changes."""
        trouble = ""
        try:
            if self._file is not None:
                found = await asyncio.to_thread(read_keys, self._file)
                self._made = replace(self._made, file=found)
        except (ValueError, OSError) as error:
            trouble = str(error)
        try:
            if self._store is not None:
                self._made = replace(self._made, store=await self._store.list())
        except OUTAGE as error:
            trouble = trouble or f"Redis: {error}"
        self._note(trouble)
        known = merged(self._fixed, self._made)
        if known != self._known:
            self._known = known
            log.info("api_keys", labels=[entry.label for entry in known])
            self._on_change(known)

    async def aclose(self) -> None:
        """Let go of the store."""
        if self._store is not None:
            await self._store.aclose()

    def _note(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            log.warning("api_keys_unreadable", reason=trouble)
        self._trouble = trouble
