"""Two gateways sharing what they learn through one real Redis that dies in the middle."""

from __future__ import annotations

from random import Random

import pytest

from router.policy import build_policy
from router.telemetry.sharing import StatsSync
from router.telemetry.store import open_store
from router.telemetry.store.base import TotalName
from tests.fakes.gateway import HandClock
from tests.fakes.outcomes import outcome
from tests.fakes.routing import question, trio
from tests.support.redis_server import lasting_redis

MODES = {worker.name: worker.record.mode for worker in trio()}
SPEEDS = {"plain": 20.0, "prose": 40.0, "code": 30.0}


@pytest.fixture
def server():
    with lasting_redis() as made:
        yield made


class Gateway:
    def __init__(self, url: str, name: str, clock: HandClock):
        self.clock = clock
        self.policy = build_policy("learned")
        self.store = open_store(url)
        self.sync = StatsSync(self.policy.knowledge, self.store, clock, gateway=name)

    def choose(self, number: int) -> str:
        wall = self.clock.wall()
        asked = question(request_id=f"r{number}", conversation=f"c{number}", wall=wall)
        return self.policy.choose(asked).worker

    def serve(self, number: int, rng: Random) -> None:
        worker = self.choose(number)
        speed = SPEEDS[worker] * rng.lognormvariate(0.0, 0.2)
        done = outcome(
            worker=worker, mode=MODES[worker], tokens_per_second=speed, at=self.clock.wall()
        )
        self.policy.observe(done)
        self.sync.record(done)

    def state(self) -> dict[str, dict]:
        tables = self.policy.knowledge.tables
        return {name: dict(table.export()) for name, table in tables.items()}


def assert_alike(first: Gateway, second: Gateway) -> None:
    for name, cells in first.state().items():
        others = second.state()[name]
        assert cells.keys() == others.keys()
        for key, moments in cells.items():
            assert moments.w == pytest.approx(others[key].w, rel=1e-6)
            assert moments.wy == pytest.approx(others[key].wy, rel=1e-6, abs=1e-9)


async def test_two_gateways_agree_and_lose_nothing_when_redis_dies(server):
    clock, rng = HandClock(), Random(4)
    gateways = [Gateway(server.url, name, clock) for name in ("a", "b")]
    away = 0
    for number in range(2000):
        gateways[number % 2].serve(number, rng)
        clock.advance(0.25)
        if number == 900:
            server.kill()
        if number == 1200:
            server.start()
        if number % 20 == 19:
            away += sum([not await gateway.sync.sync() for gateway in gateways])
    assert away > 0
    for _ in range(2):
        for gateway in gateways:
            assert await gateway.sync.sync()
    totals = await gateways[0].store.totals()
    assert sum(sums["requests"] for sums in totals.values()) == 2000
    assert totals[TotalName("tiny", "prose", "mtp-n3")]["requests"] > 1500
    assert_alike(*gateways)
    agreed = [gateways[0].choose(5000 + i) == gateways[1].choose(5000 + i) for i in range(200)]
    assert sum(agreed) >= 198
    for gateway in gateways:
        await gateway.store.aclose()


async def test_a_restarted_gateway_starts_from_what_was_learned(server):
    clock, rng = HandClock(), Random(5)
    first = Gateway(server.url, "a", clock)
    for number in range(200):
        first.serve(number, rng)
        clock.advance(1.0)
    await first.sync.sync()
    await first.sync.sync()
    clock.advance(60 * 3600.0)  # a quiet weekend
    fresh = Gateway(server.url, "b", clock)
    await fresh.sync.sync()
    assert_alike(first, fresh)
    assert fresh.choose(1) == "prose"
    for gateway in (first, fresh):
        await gateway.store.aclose()


async def test_two_gateways_that_roll_up_at_once_count_everything_once(server):
    clock, rng = HandClock(), Random(6)
    gateways = [Gateway(server.url, name, clock) for name in ("a", "b")]
    for gateway in gateways:
        for number in range(50):
            gateway.serve(number, rng)
        await gateway.sync.sync()
    clock.advance(2 * 86400.0)
    epoch = int(clock.wall() // 300)
    for gateway in (*gateways, *gateways):
        await gateway.store.roll_up(epoch)
    shared = await gateways[0].store.load()
    assert not shared.epochs
    speeds = [m for cells in shared.days.values() for c, m in cells.items() if c.table == "v"]
    assert sum(m.n for m in speeds) == pytest.approx(100.0)
    for gateway in gateways:
        await gateway.store.aclose()
