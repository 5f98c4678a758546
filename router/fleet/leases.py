"""This gateway's share of each worker's slots, leased through Redis in the background.

A worker's slots are one hash in Redis: gateway to granted slots, need, requests in flight, expiry.
One script per second and worker drops the expired, computes a fair division that every gateway
would compute the same, and grants of it what the others do not hold. What is in flight is never
taken back, so the grants never sum to more than the slots. Without Redis every slot is ours.

Where gateways outnumber a worker's slots, those that come first for that worker (each worker has
an order of its own) hold them while all are idle; the others ask again when a request waits. So
what Redis does grows with workers and slots, not with workers times gateways.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from router.in_redis import OUTAGE, Redis, key
from workers.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from router.core import WorkerSnapshot
    from router.fleet.live import Fleet
    from workers.clock import Clock
    from workers.record import WorkerRecord

log = structlog.get_logger(__name__)

LEASE_S: Final = 5.0
RENEW_S: Final = 1.0
REFUSALS: Final = 3  # in a row, until a worker without a slot for us is asked rarely
RARELY_S: Final = 30.0

# ARGV: gateway, slots, in flight, need, lease in ms. Returns {granted, in flight elsewhere}.
_SCRIPT: Final = """
local me, slots = ARGV[1], tonumber(ARGV[2])
local busy, need, lease = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local rows = redis.call('HGETALL', KEYS[1])
local ids, needs, held, elsewhere = {me}, {[me] = need}, 0, 0
for i = 1, #rows, 2 do
  local pattern = '(%d+):(%d+):(%d+):(%d+)'
  local granted, their_need, their_busy, until_ = string.match(rows[i + 1], pattern)
  if not until_ or tonumber(until_) <= now then
    redis.call('HDEL', KEYS[1], rows[i])
  elseif rows[i] ~= me then
    table.insert(ids, rows[i])
    needs[rows[i]] = tonumber(their_need)
    held = held + tonumber(granted)
    elsewhere = elsewhere + tonumber(their_busy)
  end
end
local order = {}
for _, id in ipairs(ids) do order[id] = redis.sha1hex(id .. KEYS[1]) end
table.sort(ids, function(a, b) return order[a] < order[b] end)
local left, share = slots, {}
for rank, id in ipairs(ids) do
  local fair = math.floor(slots / #ids) + ((rank <= slots % #ids) and 1 or 0)
  share[id] = math.min(needs[id], fair)
  left = left - share[id]
end
local progress = true
while left > 0 and progress do
  progress = false
  for _, id in ipairs(ids) do
    if left > 0 and share[id] < needs[id] then
      share[id], left, progress = share[id] + 1, left - 1, true
    end
  end
end
local turn = 0
while left > 0 do
  local id = ids[turn % #ids + 1]
  share[id], left, turn = share[id] + 1, left - 1, turn + 1
end
local granted = math.max(busy, math.min(share[me], slots - held))
if share[me] == 0 and need == 0 then
  redis.call('HDEL', KEYS[1], me)
  return {0, elsewhere}
end
redis.call('HSET', KEYS[1], me, granted .. ':' .. need .. ':' .. busy .. ':' .. (now + lease))
redis.call('PEXPIRE', KEYS[1], lease * 2)
return {granted, elsewhere}
"""


@dataclass(slots=True)
class _Answer:
    """What Redis last said of one worker."""

    granted: int = 0
    elsewhere: int = 0
    refusals: int = 0
    at: float = 0.0  # monotonic


class Leases:
    """One task per gateway that keeps its leases; `gateway` names it among the others."""

    def __init__(
        self,
        client: Redis,
        fleet: Fleet,
        gateway: str,
        waiting: Callable[[str], int],
        clock: Clock | None = None,
    ) -> None:
        """`waiting` says how many requests of a model are in the queue."""
        self._client = client
        self._script = client.register_script(_SCRIPT)
        self._fleet = fleet
        self._gateway = gateway
        self._waiting = waiting
        self._clock = clock or SystemClock()
        self._answers: dict[str, _Answer] = {}
        self._changed = asyncio.Event()
        self.reachable = False
        fleet.subscribe(self._on_change)

    async def run(self) -> None:
        """Renew for ever, at once when workers come or change."""
        while True:
            self._changed.clear()
            await self.sync()
            try:
                await asyncio.wait_for(self._changed.wait(), RENEW_S)
            except TimeoutError:
                continue

    async def sync(self) -> bool:
        """Renew every lease once; False while Redis is away (the last leases then stay)."""
        workers = self._fleet.everything()
        if not workers:  # nothing was asked, so nothing is known of Redis either
            return self.reachable
        now = self._clock.monotonic()
        asked = [worker for worker in workers if self._is_due(worker, now)]
        try:
            answers = await self._ask(asked)
        except OUTAGE as error:
            self._note(reachable=False, reason=str(error))
            return False
        self._note(reachable=True, reason="")
        self._take(workers, asked, answers, now)
        return True

    def _is_due(self, worker: WorkerSnapshot, now: float) -> bool:
        """Whether asking may bring, keep or give back a slot."""
        last = self._answers.get(worker.name)
        if last is None or last.granted or last.refusals < REFUSALS or worker.in_flight:
            return True
        return now - last.at >= RARELY_S or self._waiting(worker.record.model) > 0

    async def _ask(self, workers: list[WorkerSnapshot]) -> list[list[int]]:
        """One round trip for all of them."""
        if not workers:
            return []
        async with self._client.pipeline(transaction=False) as pipe:
            for worker in workers:
                busy = worker.in_flight
                need = busy + self._waiting(worker.record.model)
                slots, lease = worker.record.slots, round(1000 * LEASE_S)
                arguments: list[str | int] = [self._gateway, slots, busy, need, lease]
                await self._script([_key(worker.name)], arguments, client=pipe)
            answers: list[list[int]] = await pipe.execute()
        return answers

    def _take(
        self,
        workers: tuple[WorkerSnapshot, ...],
        asked: list[WorkerSnapshot],
        answers: list[list[int]],
        now: float,
    ) -> None:
        known = {w.name: self._answers.get(w.name) or _Answer() for w in workers}
        for worker, (granted, elsewhere) in zip(asked, answers, strict=True):
            refusals = 0 if granted else known[worker.name].refusals + 1
            known[worker.name] = _Answer(int(granted), int(elsewhere), refusals, now)
        self._answers = known
        self._fleet.set_leases(
            {name: answer.granted for name, answer in known.items()},
            {name: answer.elsewhere for name, answer in known.items()},
        )

    async def aclose(self) -> None:
        """Give everything back to the others, and let go of Redis."""
        try:
            async with self._client.pipeline(transaction=False) as pipe:
                for worker in self._fleet.everything():
                    pipe.hdel(_key(worker.name), self._gateway)
                await pipe.execute()
        except OUTAGE as error:
            log.info("leases_not_returned", reason=str(error))  # they expire by themselves
        await self._client.aclose()

    def _on_change(self, worker: WorkerRecord | None, released: bool) -> None:
        if worker is None:
            self._changed.set()

    def _note(self, *, reachable: bool, reason: str) -> None:
        if reachable != self.reachable:
            log.info("leases", reachable=reachable, reason=reason)
        self.reachable = reachable


def _key(worker: str) -> str:
    return key("lease", worker)
