"""Numbers in Redis that cannot be: left out of what is learned, and requests go on."""

from __future__ import annotations

import math
from random import Random

import pytest

from router.policy import build_policy
from router.telemetry.sharing import StatsSync
from router.telemetry.store import open_store
from tests.fakes.gateway import HandClock
from tests.fakes.outcomes import outcome
from tests.fakes.routing import question, trio
from workers.in_redis import key

pytestmark = pytest.mark.slow

IMPOSSIBLE = ("nan", "inf", "-inf", "1e300", "-1e300", "-5", "1e9", "junk", "\xff", "")
PARTS = ("n", "w", "y", "q")


class Gateway:
    def __init__(self, url: str, name: str) -> None:
        self.clock = HandClock()
        self.policy = build_policy("learned")
        self.known = self.policy.knowledge
        self.store = open_store(url)
        self.sync = StatsSync(self.known, self.store, self.clock, gateway=name)

    def serve(self, count: int) -> None:
        rng = Random(1)
        for number in range(count):
            worker = trio()[number % 3]
            done = outcome(
                worker=worker.name,
                mode=worker.record.mode,
                tokens_per_second=30.0 * rng.lognormvariate(0.0, 0.2),
                at=self.clock.wall(),
                host="h",
                beside=float(number % 2),
                prompt_chars=400,
            )
            self.policy.observe(done)
            self.sync.record(done)

    def assert_serves(self) -> None:
        asked = question(wall=self.clock.wall())
        decision = self.policy.choose(asked)
        seconds = [c.estimate.decode_s + c.estimate.prefill_s for c in decision.candidates]
        assert all(0.0 < s < 1e9 for s in seconds)
        for table in self.known.tables.values():
            assert all(math.isfinite(table.estimate(cell).mean) for cell in table.observed())
        assert 0.0 < self.known.prompt_tokens("tiny", "en", 400) < 1e5


@pytest.fixture
def open_gateway(redis_url, closing):
    def make(name: str) -> Gateway:
        made = Gateway(redis_url, name)
        closing.push_async_callback(made.store.aclose)
        return made

    return make


@pytest.fixture
async def first(open_gateway):
    """One that has learned and shared it."""
    return await _learned(open_gateway("first"))


async def _learned(gateway: Gateway) -> Gateway:
    gateway.serve(60)
    assert await gateway.sync.sync()
    gateway.assert_serves()
    return gateway


async def _epochs(client) -> list[bytes]:
    return sorted(await client.keys(key("stats", "e:*")))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("value", IMPOSSIBLE)
async def test_no_number_in_a_cell_stops_requests(first, client, open_gateway, part, value):
    (epoch,) = await _epochs(client)
    fields = [f for f in await client.hkeys(epoch) if f.startswith(part.encode())]
    assert {f[1:2] for f in fields} >= {b"v", b"l", b"c", b"r", b"n", b"k", b"p", b"b"}
    await client.hset(epoch, mapping=dict.fromkeys(fields, value.encode("latin-1")))
    fresh = open_gateway("fresh")
    assert await fresh.sync.sync()
    fresh.assert_serves()


async def test_the_other_cells_count_and_one_warning_is_given(first, client, open_gateway, capsys):
    (epoch,) = await _epochs(client)
    field = next(f for f in sorted(await client.hkeys(epoch)) if f.startswith(b"wv|"))
    await client.hset(epoch, mapping={field: "nan", "no cell": "1", "x|": "1", b"\xff\xfe": "1"})
    fresh = open_gateway("fresh")
    for _ in range(3):
        assert await fresh.sync.sync()
        await client.hincrby(key("stats", "versions"), epoch.decode().split(":", 2)[2], 1)
    count = len(first.known.tables["v"].observed())
    assert len(fresh.known.tables["v"].observed()) == count - 1
    assert capsys.readouterr().out.count("redis_unreadable") == 1


CUTS = (
    *("junk", "[]", "[1]", "null", '["a", 1, 1, 1, 1, 1]', "[1e400, 1, 1, 1, 1, 1]"),
    *("[5666666, -1.0, 1, 1, 1, 1]", "[5666666, 1e300, 1, 1, 1, 1]", "[5666666, 1, 1, -1, 1, 1]"),
)
MOVES = ("junk", "[]", "[1e300, 0.0]", "[0.0, -1e300]", "[null, 0.0]")


@pytest.mark.parametrize(
    ("cut", "move"),
    [
        *((cut, "[0.0, 0.0]") for cut in CUTS),
        *(("[5666667, 0.5, 1, 1, 1, 1]", move) for move in MOVES),
    ],
)
async def test_no_cut_stops_requests(first, client, open_gateway, cut, move):
    (epoch,) = await _epochs(client)
    names = [f[1:] for f in await client.hkeys(epoch) if f.startswith(b"w")]
    await client.hset(key("stats", "cuts"), mapping=dict.fromkeys(names, cut))
    await client.hset(key("stats", "moves"), mapping=dict.fromkeys(names, move))
    fresh = open_gateway("fresh")
    assert await fresh.sync.sync()
    fresh.assert_serves()
    await fresh.store.roll_up(10_000_000)


@pytest.mark.parametrize("field", ["e:junk", "e:", "d:", "x:5", "e:-1", "", b"\xff"])
async def test_names_that_are_no_epoch_are_left_out(client, open_gateway, field):
    await client.hset(key("stats", "versions"), field, "1")
    gateway = await _learned(open_gateway("g"))
    await gateway.store.roll_up(10_000_000)
    assert await gateway.sync.sync()


async def test_impossible_totals_are_left_out(first, client):
    (name, *_) = sorted(await client.smembers(key("totals")))
    bad = {"requests": "nan", "requests_ok": "inf", "total_s": "-1", "prompt_n": "junk"}
    await client.hset(key("totals", name.decode()), mapping=bad)
    await client.sadd(key("totals"), "junk", "[]", "[1, 2, 3]", b"\xff", '{"a": 1}')
    found = await first.store.totals()
    assert len(found) == 3
    odd = next(sums for sums in found.values() if "requests" not in sums)
    assert not odd.keys() & bad.keys()
    assert odd["predicted_n"] > 0


@pytest.mark.parametrize("name", ["[]", "null", "5", "[5]", "[[1,2,3],[4],0]", "[[],[],[]]", "{"])
async def test_cells_whose_names_say_nothing_are_left_out(first, client, open_gateway, name):
    (epoch,) = await _epochs(client)
    sums = {f"{part}{table}|{name}": 1 for part in PARTS for table in (*"vlcrnkpb", "zz")}
    await client.hset(epoch, mapping=sums)
    fresh = open_gateway("fresh")
    assert await fresh.sync.sync()
    fresh.assert_serves()
