"""What the dashboard reads: slices, sampled decisions, happenings and living gateways in Redis.

Keys: `specroute:history:WIDTH:NUMBER` (a hash; fields are a JSON list of model, class, mode, then
`|` and the sum's name), `specroute:decisions` and `specroute:happenings` (capped streams of JSON),
`specroute:happening:DIGEST` (told already), `specroute:gateways` (a set of ids),
`specroute:gateway:ID` (an expiring JSON object), `specroute:history:batch:ID` (last batch number).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import orjson

from router.in_redis import Redis, connect, key, outage_as
from router.telemetry.history import SLICES, Series, Slice, Sums
from router.telemetry.mending import execute, number_of, read
from router.telemetry.oddities import Oddities

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence

    from router.telemetry.happenings import Happening

DECISIONS_KEPT: Final = 2000
HAPPENINGS_KEPT: Final = 1000
GATEWAY_S: Final = 10  # seconds without a word after which a gateway counts as gone
_TOLD_S: Final = 300
_NOTE_S: Final = 86_400
_READ_SLICES: Final = """
local out = {}
for i, key in ipairs(KEYS) do
  local row = redis.pcall("HGETALL", key)
  out[i] = row.err and "" or table.concat(row, "\\n")
end
return out
"""
# One string a hash: a client in Python takes ten times as long to read the fields one by one.

_DECISIONS, _HAPPENINGS, _GATEWAYS = key("decisions"), key("happenings"), key("gateways")


class HistoryUnavailable(RuntimeError):
    """Redis cannot be reached just now."""


class Entry(NamedTuple):
    """One entry of a stream."""

    id: str
    row: dict[str, Any]


@dataclass(slots=True)
class Batch:
    """What one gateway adds at once; `number` rises, so that nothing is counted twice."""

    gateway: str
    number: int
    slices: Mapping[tuple[Slice, Series], Sums] = field(default_factory=dict)
    decisions: Sequence[bytes] = ()
    happenings: Sequence[Happening] = ()
    status: Mapping[str, Any] = field(default_factory=dict)


SliceSums = dict[Series, Sums]


class HistoryStore:
    """Writes batches, reads what all gateways wrote."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._odd = Oddities()

    @classmethod
    def at(cls, url: str) -> HistoryStore:
        """The store behind a Redis URL; nothing is connected yet."""
        return cls(connect(url))

    async def write(self, batch: Batch) -> None:
        """Add a batch, all of it or nothing; one already written is ignored.

        Raises:
            HistoryUnavailable: not written, or not known to be; write the same batch again.
        """
        with outage_as(HistoryUnavailable):
            note = key("history", "batch", batch.gateway)
            last = await read(self._client.get(note), note, self._odd, None)
            if number_of(last, -1) >= batch.number:
                return
            fresh = [h for h in batch.happenings if await self._is_news(h)]
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(note, str(batch.number), ex=_NOTE_S)
                _queue_slices(pipe, batch.slices)
                _queue_streams(pipe, batch.decisions, fresh)
                pipe.sadd(_GATEWAYS, batch.gateway)
                status = orjson.dumps(batch.status)
                pipe.set(key("gateway", batch.gateway), status, ex=GATEWAY_S)
                await execute(self._client, pipe, self._odd)

    async def slices(self, wanted: Iterable[Slice]) -> dict[Slice, SliceSums]:
        """The sums of those slices; a slice without traffic is empty.

        Raises:
            HistoryUnavailable: Redis cannot be reached.
        """
        slices = list(wanted)
        known: dict[bytes, tuple[Series, str]] = {}
        with outage_as(HistoryUnavailable):
            keys = [_slice_key(one) for one in slices]
            texts = await _call(self._client.eval(_READ_SLICES, len(keys), *keys))
        rows = zip(slices, keys, texts, strict=True)
        return {one: self._read_slice(name, text, known) for one, name, text in rows}

    async def decisions(self, *, after: str = "-", count: int = DECISIONS_KEPT) -> list[Entry]:
        """Sampled decisions newer than the entry `after`, the newest first.

        Raises:
            HistoryUnavailable: Redis cannot be reached.
        """
        return await self._read(_DECISIONS, after, count)

    async def happenings(self, *, after: str = "-", count: int = HAPPENINGS_KEPT) -> list[Entry]:
        """Happenings newer than the entry `after`, the newest first.

        Raises:
            HistoryUnavailable: Redis cannot be reached.
        """
        return await self._read(_HAPPENINGS, after, count)

    async def gateways(self) -> dict[str, dict[str, Any]]:
        """What the living gateways last said of themselves, by id.

        Raises:
            HistoryUnavailable: Redis cannot be reached.
        """
        with outage_as(HistoryUnavailable):
            members = self._client.smembers(_GATEWAYS)
            names = sorted(await read(members, _GATEWAYS, self._odd, set()))  # bytes, of anybody
            keys = [key("gateway", "").encode() + name for name in names]
            values: Any = await self._client.mget(keys) if names else []
            gone = [name for name, value in zip(names, values, strict=True) if value is None]
            if gone:
                await _call(self._client.srem(_GATEWAYS, *gone))
        pairs = zip(names, values, strict=True)
        said = {name.decode(errors="replace"): self._object(_GATEWAYS, v) for name, v in pairs if v}
        return {name: row for name, row in said.items() if row is not None}

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def _is_news(self, happening: Happening) -> bool:
        told = key("happening", happening.digest)
        return bool(await self._client.set(told, b"1", nx=True, ex=_TOLD_S))

    async def _read(self, stream: str, after: str, count: int) -> list[Entry]:
        oldest = after if after == "-" else f"({after}"
        with outage_as(HistoryUnavailable):
            entries = self._client.xrevrange(stream, "+", oldest, count=count)
            found = await read(entries, stream, self._odd, [])
        rows = ((id_.decode(), self._object(stream, fields.get(b"row"))) for id_, fields in found)
        return [Entry(id_, row) for id_, row in rows if row is not None]

    def _object(self, name: str, value: bytes | None) -> dict[str, Any] | None:
        try:
            row = orjson.loads(value or b"")
        except ValueError:
            row = None
        if isinstance(row, dict):
            return row
        self._odd.left_out(name, 1)
        return None

    def _read_slice(
        self, name: str, text: bytes, known: dict[bytes, tuple[Series, str]]
    ) -> SliceSums:
        found, odd = _read_slice(text, known)
        self._odd.left_out(name, odd)
        return found


async def _call(answer: Any) -> Any:
    return await cast("Awaitable[Any]", answer)


def _slice_key(one: Slice) -> str:
    return key("history", str(one.width), str(one.number))


def _queue_slices(pipe: Any, slices: Mapping[tuple[Slice, Series], Sums]) -> None:
    for (one, series), sums in slices.items():
        name, prefix = _slice_key(one), orjson.dumps(list(series)).decode()
        for field_, amount in sums.items():
            if isinstance(amount, int):
                pipe.hincrby(name, f"{prefix}|{field_}", amount)
            else:
                pipe.hincrbyfloat(name, f"{prefix}|{field_}", amount)
    for one in {one for one, _ in slices}:
        pipe.expire(_slice_key(one), SLICES[one.width] + one.width)


def _queue_streams(pipe: Any, decisions: Sequence[bytes], happenings: list[Happening]) -> None:
    for row in decisions:
        pipe.xadd(_DECISIONS, {"row": row}, maxlen=DECISIONS_KEPT, approximate=True)
    for happening in happenings:
        row = orjson.dumps(happening.as_dict())
        pipe.xadd(_HAPPENINGS, {"row": row}, maxlen=HAPPENINGS_KEPT, approximate=True)


def _read_slice(text: bytes, known: dict[bytes, tuple[Series, str]]) -> tuple[SliceSums, int]:
    """The sums, and how many were left out; `known` has names, the same in every slice."""
    found: SliceSums = {}
    odd = 0
    parts = text.split(b"\n") if text else []
    for name, value in zip(parts[::2], parts[1::2], strict=False):
        try:
            place = known.get(name) or known.setdefault(name, _place(name))
            amount = float(value)
        except (TypeError, ValueError):
            odd += 1
            continue
        if not math.isfinite(amount):
            odd += 1
            continue
        series, field_name = place
        sums = found.get(series)
        if sums is None:
            sums = found[series] = {}
        sums[field_name] = amount
    return found, odd


def _place(name: bytes) -> tuple[Series, str]:
    prefix, _, field_ = name.rpartition(b"|")
    series = Series(*orjson.loads(prefix))
    if not all(isinstance(part, str) for part in series):
        raise TypeError("a series is named by texts")
    return series, field_.decode()
