"""One page of figures for the serving processes of one parent: whoever is asked adds the others'.

Each process leaves its page in a folder of the family once a second. A page outlives its process,
so that a sum never falls when one is started again; its gauges count only while it is fresh.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from workers.clock import Clock

INTERVAL_S: Final = 1.0
FRESH_S: Final = 5.0  # a process that has left no page for so long is gone
_ADDED: Final = frozenset({"counter", "histogram"})
_ADDED_GAUGES: Final = frozenset({"specroute_worker_inflight", "specroute_queue_depth"})
"""Gauges of one process's own requests; the others tell of what all see alike."""


class Family:
    """This process's page among those of its siblings; `name` is unique in the folder."""

    def __init__(self, folder: Path, name: str, page: Callable[[], bytes], clock: Clock) -> None:
        self._folder = folder
        self._own = folder / f"{name}.prom"
        self._page = page
        self._clock = clock

    async def run(self) -> None:
        """Leave the page once a second until cancelled."""
        while True:
            await asyncio.to_thread(self._leave, self._page())
            await asyncio.sleep(INTERVAL_S)

    def text(self) -> bytes:
        """The family's page: this process's as it is now, the others' as they left it."""
        return merged(self._page(), self._others())

    def _leave(self, page: bytes) -> None:
        scratch = self._own.with_suffix(".new")
        scratch.write_bytes(page)
        scratch.replace(self._own)

    def _others(self) -> Iterator[tuple[bytes, bool]]:
        now = self._clock.wall()
        for path in sorted(self._folder.glob("*.prom")):
            with contextlib.suppress(OSError):
                if path != self._own:
                    yield path.read_bytes(), now - path.stat().st_mtime < FRESH_S


class _Group:
    """One metric's lines: what describes it, and its samples by name and labels."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.kind = ""
        self.samples: dict[str, float] = {}


def merged(own: bytes, others: Iterable[tuple[bytes, bool]]) -> bytes:
    """`own` page with other pages, each with whether it is fresh, in Prometheus' text format.

    Counters and histograms are added up; so are the gauges of a process's own requests, and any
    other gauge is the first that is known.
    """
    groups = _read(own)
    for page, is_fresh in others:
        for name, group in _read(page).items():
            into = groups.setdefault(name, _Group())
            into.head = into.head or group.head
            adds = group.kind in _ADDED or name in _ADDED_GAUGES
            if group.kind in _ADDED or is_fresh:
                _take(into.samples, group.samples, adds=adds)
    rows = [row for group in groups.values() for row in _rows(group)]
    return ("\n".join(rows) + "\n").encode()


def _take(into: dict[str, float], samples: dict[str, float], *, adds: bool) -> None:
    for name, value in samples.items():
        into[name] = into.get(name, 0.0) + value if adds else into.get(name, value)


def _read(page: bytes) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    group = _Group()
    for line in page.decode().splitlines():
        if line.startswith("# "):
            _, what, name, text = [*line.split(" ", 3), ""][:4]
            group = groups.setdefault(name, _Group())
            group.head.append(line)
            group.kind = text if what == "TYPE" else group.kind
        elif line:
            name, _, value = line.rpartition(" ")
            group.samples[name] = float(value)
    return groups


def _rows(group: _Group) -> list[str]:
    return [*group.head, *(f"{name} {value!r}" for name, value in group.samples.items())]
