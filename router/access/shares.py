"""Rate limits of one key over several gateways: what is left moves to where it is asked for.

A limit is one hash in Redis: gateway to what it holds of the bucket, what it was asked for, expiry;
and what nobody holds. One script per second and limit lets the bucket fill, takes back what exceeds
this gateway's share of the demand, and grants what is missing of it. What the gateways hold never
sums to more than the bucket, so that together they let through what one would. While Redis is away
each fills its last share by itself. Counterpart: `router.fleet.leases`, the same for slots.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from router.in_redis import OUTAGE, Redis, key

if TYPE_CHECKING:
    from router.access.rate_limit import Bucket, RateLimiter
    from workers.clock import Clock

log = structlog.get_logger(__name__)

SYNC_S: Final = 1.0
EXPIRY_S: Final = 5.0  # a gateway that was not heard of for so long is gone

# ARGV: gateway, capacity, units per second, held, wanted, expiry in ms, 1 to leave for good.
# Returns {change of what is held, share of the demand}, both as text.
_SCRIPT: Final = """
local me, capacity, rate = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local held, wanted, expiry = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local rows = redis.call('HGETALL', KEYS[1])
local free, at, others, demand, count, known = 0, nil, 0, 0, 1, false
for i = 1, #rows, 2 do
  local a, b, c = string.match(rows[i + 1], '([^:]*):([^:]*):?([^:]*)')
  if rows[i] == '_' then
    free, at = tonumber(a), tonumber(b)
  elseif rows[i] == me then
    known = true
  elseif tonumber(c) <= now then
    redis.call('HDEL', KEYS[1], rows[i])
  else
    others, demand, count = others + tonumber(a), demand + tonumber(b), count + 1
  end
end
local before = held
if not known and at then held = held - capacity end  -- it began with a bucket of its own
if at then free = free + math.max(0, now - at) * rate end
free = math.min(free, capacity - others - held)
local share = (wanted + 0.01) / (demand + wanted + 0.01 * count)
local target = math.max(0, free + others + held) * share
if held > target then
  free, held = free + held - target, target
else
  local grant = math.min(math.max(free, 0), target - held)
  free, held = free - grant, held + grant
end
local until_ = now + expiry / 1000
if ARGV[7] == '1' then
  free = free + held
  redis.call('HDEL', KEYS[1], me)
else
  redis.call('HSET', KEYS[1], me, string.format('%.6f:%.6f:%.6f', held, wanted, until_))
end
redis.call('HSET', KEYS[1], '_', string.format('%.6f:%.6f', free, now))
redis.call('PEXPIRE', KEYS[1], 300000)
return {string.format('%.6f', held - before), string.format('%.6f', share)}
"""


class Shares:
    """One task per gateway; `gateway` names it among the others."""

    def __init__(self, client: Redis, limiter: RateLimiter, gateway: str, clock: Clock) -> None:
        self._client = client
        self._limiter = limiter
        self._gateway = gateway
        self._clock = clock
        self._wanted: dict[str, float] = {}  # demand by limit, smoothed over a few seconds
        self._share: dict[str, float] = {}
        self.reachable = False

    async def run(self) -> None:
        """Keep the shares for ever."""
        while True:
            await self.sync()
            await asyncio.sleep(SYNC_S)

    async def sync(self) -> bool:
        """Settle every limit once; False while Redis is away."""
        buckets = self._limiter.buckets()
        try:
            for name, bucket in buckets.items():
                await self._settle(name, bucket)
        except OUTAGE as error:
            self._note(reachable=False, reason=str(error))
            for name, bucket in buckets.items():
                bucket.flow = self._share.get(name, 1.0)
            return False
        self._note(reachable=True, reason="")
        return True

    async def aclose(self) -> None:
        """Leave what is held to the others, and let go of Redis."""
        try:
            for name, bucket in self._limiter.buckets().items():
                await self._settle(name, bucket, leave=True)
        except OUTAGE as error:
            log.info("shares_not_returned", reason=str(error))  # they expire by themselves
        await self._client.aclose()

    async def _settle(self, name: str, bucket: Bucket, *, leave: bool = False) -> None:
        held, asked = bucket.report(self._clock.monotonic())
        wanted = self._wanted[name] = 0.5 * self._wanted.get(name, 0.0) + asked
        arguments = (self._gateway, bucket.capacity, bucket.rate, held, wanted)
        change, share = await self._client.eval(
            _SCRIPT, 1, _key(name), *arguments, round(1000 * EXPIRY_S), int(leave)
        )
        bucket.flow = 0.0  # from now on it comes as grants
        bucket.grant(float(change))
        self._share[name] = float(share)

    def _note(self, *, reachable: bool, reason: str) -> None:
        if reachable != self.reachable:
            log.info("rate_shares", reachable=reachable, reason=reason)
        self.reachable = reachable


def _key(name: str) -> str:
    return key("rate", name)
