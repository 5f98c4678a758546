"""One limit over several gateways, settled in a real Redis."""

from __future__ import annotations

import pytest
import redis

from router.access import KeyEntry, RateLimiter
from router.access.shares import Shares
from router.core import RateLimited
from router.in_redis import connect
from workers.clock import SystemClock

LIMIT = 60.0


class _Gateways:
    """So many limiters of the same key; Redis' own clock moves the shared bucket."""

    def __init__(self, url: str, count: int, **limits) -> None:
        clock = SystemClock()
        entries = [KeyEntry("k", "digest", **(limits or {"requests_per_minute": LIMIT}))]
        self.limiters = [RateLimiter(clock, entries) for _ in range(count)]
        self.shares = [
            Shares(connect(url), limiter, f"g{n}", clock) for n, limiter in enumerate(self.limiters)
        ]

    async def sync(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            for share in self.shares:
                assert await share.sync()

    def let_through(self, number: int, tries: int) -> int:
        passed = 0
        for _ in range(tries):
            try:
                self.limiters[number].acquire("k")
            except RateLimited:
                continue
            passed += 1
        return passed

    def held(self) -> list[float]:
        now = SystemClock().monotonic()
        return [bucket.report(now)[0] for lim in self.limiters for bucket in lim.buckets().values()]

    async def aclose(self) -> None:
        for share in self.shares:
            await share.aclose()


@pytest.fixture
async def make(redis_url):
    made = []

    def start(count: int, **limits) -> _Gateways:
        made.append(_Gateways(redis_url, count, **limits))
        return made[-1]

    yield start
    for one in made:
        await one.aclose()


async def test_together_they_let_through_what_one_would(make):
    gateways = make(3)
    await gateways.sync(2)
    assert sum(gateways.held()) == pytest.approx(LIMIT, abs=2.0)
    passed = sum(gateways.let_through(n, 100) for n in range(3))
    assert passed == pytest.approx(LIMIT, abs=3.0)
    await gateways.sync(2)
    assert sum(gateways.let_through(n, 100) for n in range(3)) <= 4  # what flowed in meanwhile


async def test_what_is_left_moves_to_where_it_is_asked_for(make):
    gateways = make(2)
    await gateways.sync(2)
    first = gateways.let_through(0, 100)
    assert first == pytest.approx(LIMIT / 2, abs=2.0)
    await gateways.sync(3)
    rest = gateways.let_through(0, 100)
    assert first + rest > 0.9 * LIMIT
    assert first + rest <= LIMIT + 3


async def test_a_newcomer_adds_nothing_and_a_leaver_takes_nothing(make, redis_url):
    def unheld() -> float:
        with redis.Redis.from_url(redis_url) as raw:
            return float(raw.hget("specroute:rate:requests:k", "_").split(b":")[0])

    old = make(1)
    await old.sync()
    old.let_through(0, 20)
    await old.sync()
    new = make(1)
    new.shares[0]._gateway = "newcomer"
    new.let_through(0, 5)  # before it has heard of anybody
    for _ in range(2):
        await new.sync()
        await old.sync()
    assert unheld() + sum((*old.held(), *new.held())) == pytest.approx(LIMIT - 25, abs=3.0)
    await old.aclose()
    await new.sync(2)
    assert sum(new.held()) == pytest.approx(LIMIT - 25, abs=4.0)


async def test_a_debt_is_everybodys(make):
    gateways = make(2, tokens_per_minute=600.0)
    await gateways.sync(2)
    gateways.limiters[0].acquire("k")
    gateways.limiters[0].spend("k", 1500)
    await gateways.sync(3)
    for limiter in gateways.limiters:
        with pytest.raises(RateLimited):
            limiter.acquire("k")


async def test_while_redis_is_away_each_fills_its_own_share(make):
    gateways = make(2)
    await gateways.sync(2)
    share = gateways.shares[0]
    here, share._client = share._client, connect("redis://127.0.0.1:1")
    assert not await share.sync()
    assert not share.reachable
    (bucket,) = gateways.limiters[0].buckets().values()
    assert bucket.flow == pytest.approx(0.5, abs=0.1)
    await share._client.aclose()
    share._client = here
    assert await share.sync()
    assert bucket.flow == 0.0


async def test_rows_of_the_vanished_do_not_stay(make, redis_url):
    gateways = make(1)
    with redis.Redis.from_url(redis_url) as raw:
        raw.hset("specroute:rate:requests:k", mapping={"gone": "60:5:1", "_": "0:1"})
        await gateways.sync(2)
        assert raw.hkeys("specroute:rate:requests:k") == [b"_", b"g0"]
    assert sum(gateways.held()) == pytest.approx(LIMIT, abs=1.0)
