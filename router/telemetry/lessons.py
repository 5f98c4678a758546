"""What gateways tell each other about answers and models: the classifier's place in Redis.

Keys, all under `specroute:classifier:`. `samples` (a list of packed examples, capped), `seen` and
`studied` (how many samples ever came, and how many had come at the last study), `line` (the learned
model and those before it, sealed), `number` (how often `line` was written), `student` (who studies
now, expires), `answers` (a stream of remembered answers, capped).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from classifier import Remembered
from classifier.traffic import MAX_EXAMPLES
from router.in_redis import Redis, key, outage_as
from router.telemetry.mending import execute, number_of, read
from router.telemetry.oddities import Oddities
from router.telemetry.store.base import StoreUnavailable
from workers.keys import SealBroken, seal, unseal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

MAX_BATCHES: Final = 20_000
"""Batches of remembered answers kept, at most one per gateway and second: some 30 MB if every one
were full. A gateway that starts reads them all."""

_PAGE: Final = 1000
_BEGINNING: Final = "0-0"
_PURPOSE: Final = "classifier"
_SAMPLES, _ANSWERS = key("classifier", "samples"), key("classifier", "answers")
_SEEN, _STUDIED = key("classifier", "seen"), key("classifier", "studied")
_LINE, _NUMBER = key("classifier", "line"), key("classifier", "number")
_STUDENT: Final = key("classifier", "student")


class Lessons:
    """The classifier's keys in Redis; every method raises StoreUnavailable while it is away."""

    def __init__(self, client: Redis, cluster_secret: str, gateway: str) -> None:
        """`gateway` tells our own remembered answers from the others'."""
        self._client = client
        self._secret = cluster_secret
        self._gateway = gateway.encode()
        self._read_up_to = _BEGINNING
        self._has_heard = False
        self._odd = Oddities()

    async def add_samples(self, samples: Sequence[bytes]) -> None:
        """Append packed examples; the oldest go."""
        with outage_as(StoreUnavailable):
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.rpush(_SAMPLES, *samples)
                pipe.ltrim(_SAMPLES, -MAX_EXAMPLES, -1)
                pipe.incrby(_SEEN, len(samples))
                await execute(self._client, pipe, self._odd)

    async def samples(self) -> list[bytes]:
        """All examples that are kept, oldest first."""
        with outage_as(StoreUnavailable):
            kept = await read(self._client.lrange(_SAMPLES, 0, -1), _SAMPLES, self._odd, [])
        return cast("list[bytes]", kept)

    async def unstudied(self) -> int:
        """Samples that came since the last study."""
        counts = await self._call(self._client.mget(_SEEN, _STUDIED))
        seen, studied = (number_of(count, 0) for count in counts)
        return seen - studied if seen >= studied else seen  # less: it was begun anew

    async def begin_study(self, seconds: int) -> bool:
        """Whether nobody else studies; if so, nobody else will for so long."""
        return bool(await self._call(self._client.set(_STUDENT, b"1", nx=True, ex=seconds)))

    async def end_study(self) -> None:
        """All samples that have come are studied."""
        with outage_as(StoreUnavailable):
            (seen,) = await self._call(self._client.mget(_SEEN))  # none if it is no text
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(_STUDIED, seen or b"0")
                pipe.delete(_STUDENT)
                await pipe.execute()

    async def publish(self, line: bytes) -> None:
        """Make `line` what every gateway serves from."""
        with outage_as(StoreUnavailable):
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(_LINE, seal(self._secret, _PURPOSE, line))
                pipe.incr(_NUMBER)
                await execute(self._client, pipe, self._odd)

    async def number(self) -> int:
        """How often a line was published; a gateway looks at it for news."""
        with outage_as(StoreUnavailable):
            return number_of(await read(self._client.get(_NUMBER), _NUMBER, self._odd, None), 0)

    async def line(self) -> bytes | None:
        """What was published last; None for nothing, or nothing of this cluster."""
        with outage_as(StoreUnavailable):
            sealed = await read(self._client.get(_LINE), _LINE, self._odd, None)
        try:
            return unseal(self._secret, _PURPOSE, sealed) if sealed else None
        except SealBroken:
            return None

    async def tell(self, answers: Sequence[Remembered]) -> None:
        """Let the other gateways know of our answers."""
        rows = orjson.dumps([tuple(answer) for answer in answers])
        fields: Any = {"gateway": self._gateway, "answers": rows}
        with outage_as(StoreUnavailable):
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.xadd(_ANSWERS, fields, maxlen=MAX_BATCHES, approximate=True)
                await execute(self._client, pipe, self._odd)

    async def heard(self) -> list[Remembered]:
        """Answers of the other gateways since the last call; at first, also our own of before."""
        first, self._has_heard = not self._has_heard, True
        found: list[Remembered] = []
        while True:
            rows = self._client.xrange(_ANSWERS, min=f"({self._read_up_to}", count=_PAGE)
            with outage_as(StoreUnavailable):
                page = await read(rows, _ANSWERS, self._odd, [])
            for identity, fields in page:
                self._read_up_to = identity.decode()
                if first or fields.get(b"gateway") != self._gateway:
                    found.extend(_answers(fields.get(b"answers", b"")))
            if len(page) < _PAGE:
                return found

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def _call(self, answer: Any) -> Any:
        with outage_as(StoreUnavailable):
            return await cast("Awaitable[Any]", answer)


def _answers(raw: bytes) -> list[Remembered]:
    """The rows of a batch; none of what another version wrote."""
    try:
        return [
            Remembered(tuple(map(str, keys)), str(kind), float(at), accepted)
            for keys, kind, at, accepted in orjson.loads(raw)
        ]
    except (TypeError, ValueError):
        return []
