"""The stats store that gateways share through Redis.

Keys: `specroute:stats:e:N` and `specroute:stats:d:N` (a hash per epoch and per day, four fields a
cell), `specroute:stats:versions` (a hash: how often each was written), `specroute:stats:cuts` and
`specroute:stats:moves` (where a cell's past ends, and by how much it moved; two hashes, because
versions before the second one read the first), `specroute:stats:batch:GATEWAY` (the last batch
number of each), `specroute:totals` (a set of names) and `specroute:totals:NAME` (a hash of plain
sums; NAME is a JSON list of model, class, mode).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from router.in_redis import Redis, WatchError, key, outage_as
from router.telemetry.mending import execute, number_of, or_else, read
from router.telemetry.oddities import Oddities
from router.telemetry.store.base import (
    DAY_EPOCHS,
    KEEP_DAYS,
    TIME_SUFFIXES,
    Batch,
    CellName,
    Cut,
    SharedStats,
    StoreUnavailable,
    TotalName,
    before_cut,
)
from router.telemetry.store.reading import (
    PARTS,
    Cells,
    cell_field,
    read_cells,
    read_cuts,
    read_sums,
    read_total_name,
    read_versions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from router.telemetry.stats import Moments

_VERSIONS = key("stats", "versions")
_CUTS, _MOVES = key("stats", "cuts"), key("stats", "moves")
_TOTALS = key("totals")
_BATCH_NOTE_S: Final = 86400  # how long a gateway may be away and still know what it published
_TTL_S: Final = (KEEP_DAYS + 1) * 86400
_RACES: Final = 3  # how often a roll-up tries again after another gateway was faster


class RedisStatsStore:
    """Increments in one transaction per batch; reads only what was written since the last read."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._versions: dict[str, bytes] = {}
        self._cells: dict[str, Cells] = {}
        self._odd = Oddities()

    async def publish(self, batch: Batch) -> None:
        """Add a batch in one transaction that also notes its number."""
        with outage_as(StoreUnavailable):
            note = key("stats", "batch", batch.gateway)
            last = await read(self._client.get(note), note, self._odd, None)
            if batch.number <= number_of(last, -1):
                return
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(note, str(batch.number), ex=_BATCH_NOTE_S)
                _queue_rows(pipe, batch)
                _queue_totals(pipe, batch)
                _queue_cuts(pipe, batch)
                await execute(self._client, pipe, self._odd, _parts_of)

    async def load(self) -> SharedStats:
        """The sums; hashes that nobody wrote to since are taken from the last reading."""
        with outage_as(StoreUnavailable):
            await self._refresh(await self._load_versions())
            cuts = await self._load_cuts()
        return SharedStats(self._of_kind("e"), self._of_kind("d"), cuts)

    async def totals(self) -> Mapping[TotalName, Mapping[str, float]]:
        """Plain sums."""
        with outage_as(StoreUnavailable):
            names = sorted(await read(self._client.smembers(_TOTALS), _TOTALS, self._odd, set()))
            found = {}
            for name in names:
                total = read_total_name(name)
                if total is None:
                    self._odd.left_out(_TOTALS, 1)
                else:
                    found[total] = await self._load_sums(key("totals", name.decode()))
        return found

    async def roll_up(self, now_epoch: int) -> None:
        """Fold old epochs into days: exactly once, whoever comes first."""
        with outage_as(StoreUnavailable):
            names = sorted(await self._load_versions())
            cuts = await self._load_cuts()
            oldest = now_epoch // DAY_EPOCHS - KEEP_DAYS
            for name in names:
                kind, _, number = name.partition(":")
                if kind == "e" and int(number) <= now_epoch - DAY_EPOCHS:
                    await self._fold(int(number), cuts)
                elif kind == "d" and int(number) < oldest:
                    await self._drop(name)
            stale = [c for c, cut in cuts.items() if cut.epoch // DAY_EPOCHS < oldest]
            if stale:
                await self._forget_cuts(stale)

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def _refresh(self, versions: dict[str, bytes]) -> None:
        for name, version in versions.items():
            if self._versions.get(name) != version:
                fields = await self._load_hash(key("stats", name))
                self._cells[name] = self._read(name, fields)
        for gone in self._cells.keys() - versions.keys():
            del self._cells[gone]
        self._versions = versions

    def _of_kind(self, kind: str) -> dict[int, Cells]:
        return {
            int(name.partition(":")[2]): cells
            for name, cells in self._cells.items()
            if name.startswith(kind)
        }

    async def _fold(self, epoch: int, cuts: Mapping[CellName, Cut]) -> None:
        """WATCH makes the transaction fail if another gateway folded or wrote meanwhile."""
        source, day = f"e:{epoch}", f"d:{epoch // DAY_EPOCHS}"
        for _ in range(_RACES):
            async with self._client.pipeline(transaction=True) as pipe:
                await pipe.watch(key("stats", source))
                stored = pipe.hgetall(key("stats", source))
                cells = self._read(source, await read(stored, source, self._odd, {}))
                pipe.multi()  # type: ignore[no-untyped-call]
                for cell, moments in cells.items():
                    _increase(pipe, day, cell, before_cut(moments, epoch, cuts.get(cell)))
                pipe.expire(key("stats", day), _TTL_S)
                pipe.hincrby(_VERSIONS, day, 1)
                pipe.delete(key("stats", source))
                pipe.hdel(_VERSIONS, source)
                if await self._executed(pipe):
                    return

    async def _load_cuts(self) -> dict[CellName, Cut]:
        async with self._client.pipeline(transaction=True) as pipe:
            pipe.hgetall(_CUTS)
            pipe.hgetall(_MOVES)
            answers = await pipe.execute(raise_on_error=False)
        names = (_CUTS, _MOVES)
        rows = zip(answers, names, strict=True)
        cuts, odd = read_cuts(*(or_else(row, name, self._odd, {}) for row, name in rows))
        self._odd.left_out(_CUTS, odd)
        return cuts

    async def _load_versions(self) -> dict[str, bytes]:
        versions, odd = read_versions(await self._load_hash(_VERSIONS))
        self._odd.left_out(_VERSIONS, odd)
        return versions

    async def _load_sums(self, name: str) -> dict[str, float]:
        sums, odd = read_sums(await self._load_hash(name))
        self._odd.left_out(name, odd)
        return sums

    def _read(self, name: str, fields: Mapping[bytes, bytes]) -> Cells:
        cells, odd = read_cells(fields)
        self._odd.left_out(key("stats", name), odd)
        return cells

    async def _forget_cuts(self, cells: Sequence[CellName]) -> None:
        fields = [cell_field(cell) for cell in cells]
        async with self._client.pipeline(transaction=True) as pipe:
            pipe.hdel(_CUTS, *fields)
            pipe.hdel(_MOVES, *fields)
            await pipe.execute()

    async def _drop(self, name: str) -> None:
        async with self._client.pipeline(transaction=True) as pipe:
            pipe.delete(key("stats", name))
            pipe.hdel(_VERSIONS, name)
            await pipe.execute()

    async def _load_hash(self, name: str) -> Mapping[bytes, bytes]:
        found = await read(self._client.hgetall(name), name, self._odd, {})
        return cast("Mapping[bytes, bytes]", found)

    async def _executed(self, pipe: Any) -> bool:
        try:
            await execute(self._client, pipe, self._odd, _parts_of)
        except WatchError:
            return False
        return True


def _parts_of(field: str) -> tuple[str, ...]:
    """A cell whose parts do not belong together would say something, and it would be wrong."""
    if field[:1] not in PARTS or "|" not in field:
        return (field,)
    return tuple(part + field[1:] for part in PARTS)


def _queue_rows(pipe: Any, batch: Batch) -> None:
    written: set[str] = set()
    for (epoch, cell), moments in batch.rows.items():
        name = f"e:{epoch}"
        _increase(pipe, name, cell, moments)
        written.add(name)
    for name in written:
        pipe.expire(key("stats", name), _TTL_S)
        pipe.hincrby(_VERSIONS, name, 1)


def _queue_totals(pipe: Any, batch: Batch) -> None:
    for total, sums in batch.totals.items():
        name = orjson.dumps(list(total)).decode()
        pipe.sadd(_TOTALS, name)
        for field, amount in sums.items():
            if field.endswith(TIME_SUFFIXES):
                pipe.hincrbyfloat(key("totals", name), field, amount)
            else:
                pipe.hincrby(key("totals", name), field, int(amount))


def _increase(pipe: Any, name: str, cell: CellName, moments: Moments) -> None:
    field = cell_field(cell)
    for part, amount in zip(PARTS, _amounts(moments), strict=True):
        pipe.hincrbyfloat(key("stats", name), f"{part}{field}", amount)


def _amounts(moments: Moments) -> tuple[float, float, float, float]:
    return moments.n, moments.w, moments.wy, moments.wyy


def _queue_cuts(pipe: Any, batch: Batch) -> None:
    for cell, cut in batch.cuts.items():
        field = cell_field(cell)
        pipe.hset(_CUTS, field, orjson.dumps([cut.epoch, cut.factor, *_amounts(cut.base)]))
        pipe.hset(_MOVES, field, orjson.dumps([cut.jump, cut.moved]))
