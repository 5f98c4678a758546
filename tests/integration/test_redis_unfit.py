"""Keys of the wrong type and sums that are no numbers: what gateways share goes on without them."""

from __future__ import annotations

import pytest

from classifier import Remembered
from router.telemetry.chronicle import Chronicle, Sight
from router.telemetry.history import Series, Slice
from router.telemetry.history_store import HistoryStore
from router.telemetry.lessons import Lessons
from router.telemetry.stats import Moments
from router.telemetry.store import open_store
from router.telemetry.store.base import DAY_EPOCHS, Batch, CellName, Cut, Row, TotalName
from tests.fakes.gateway import HandClock
from tests.fakes.outcomes import outcome
from workers.in_redis import connect, key

pytestmark = pytest.mark.slow

CELL, OTHER = CellName("v", '[["m","k","ar"],["prose"],0]'), CellName("n", '["m"]')
TOTAL = TotalName("m", "prose", "ar")
NOW = 300 * DAY_EPOCHS
ONE_MINUTE = Slice(60, 20)


@pytest.fixture
def store(redis_url, closing):
    made = open_store(redis_url)
    closing.push_async_callback(made.aclose)
    return made


@pytest.fixture
def history(redis_url, closing):
    made = HistoryStore.at(redis_url)
    closing.push_async_callback(made.aclose)
    return made


@pytest.fixture
def lessons(redis_url, closing):
    made = Lessons(connect(redis_url), "secret", "g")
    closing.push_async_callback(made.aclose)
    return made


async def _spoil(client, name: str) -> None:
    """Make the key one of another type."""
    kind = await client.type(name)
    await client.delete(name)
    await (client.rpush(name, "junk") if kind in (b"string", b"none") else client.set(name, "junk"))


def _batch(number: int) -> Batch:
    rows = {Row(NOW, cell): Moments(1.0, 1.0, 3.0, 9.0) for cell in (CELL, OTHER)}
    cuts = {CELL: Cut(NOW - 5, 0.5, Moments())}
    return Batch("g", number, rows, {TOTAL: {"requests": 1, "total_s": 0.5}}, cuts)


STATS = (
    *("stats:versions", f"stats:e:{NOW}", "stats:cuts", "stats:moves", "stats:batch:g"),
    *("totals", 'totals:["m","prose","ar"]', "stats:e:7"),
)


@pytest.mark.parametrize("name", STATS)
async def test_figures_are_shared_whatever_key_is_of_another_type(client, store, name, capsys):
    await client.hset(key("stats", "versions"), "e:7", "1")
    await store.publish(_batch(0))
    await _spoil(client, key(name))
    await store.load()
    await store.totals()
    for number in range(1, 3):
        await store.publish(_batch(number))
        shared, totals = await store.load(), await store.totals()
    assert shared.epochs[NOW][CELL].n == shared.epochs[NOW][OTHER].n >= 2.0
    assert totals[TOTAL]["requests"] >= 2.0
    assert CELL in shared.cuts
    await store.roll_up(NOW + DAY_EPOCHS)
    assert (await store.load()).days[NOW // DAY_EPOCHS][OTHER].n >= 2.0
    assert capsys.readouterr().out.count("redis_unreadable") <= 2


@pytest.mark.parametrize("value", ["junk", "nan", "inf"])
async def test_a_cell_that_nothing_can_be_added_to_begins_anew(client, store, value, capsys):
    await store.publish(_batch(0))
    await client.hset(key("stats", f"e:{NOW}"), f"wv|{CELL.key}", value)
    await client.hset(key("totals", '["m","prose","ar"]'), mapping={"requests": value})
    await store.publish(_batch(1))
    shared, totals = await store.load(), await store.totals()
    assert shared.epochs[NOW][CELL] == Moments(1.0, 1.0, 3.0, 9.0)  # none of its parts is older
    assert shared.epochs[NOW][OTHER].n == 2.0
    assert totals[TOTAL] == {"requests": 1.0, "total_s": 1.0}
    assert capsys.readouterr().out.count("redis_unreadable") == 2


async def test_a_batch_number_that_is_none_counts_as_none(client, store, history):
    await client.set(key("stats", "batch", "g"), "junk")
    await client.set(key("history", "batch", "g"), "junk")
    await store.publish(_batch(0))
    assert (await store.totals())[TOTAL]["requests"] == 1.0
    chronicle = Chronicle(history, HandClock(), gateway="g", look=Sight)
    assert await chronicle.flush()


HISTORY = ("history:60:20", "decisions", "gateways", "gateway:g", "history:batch:g")


@pytest.mark.parametrize("name", HISTORY)
async def test_history_goes_on_whatever_key_is_of_another_type(client, history, name):
    chronicle = Chronicle(history, HandClock(), gateway="g", look=Sight)
    chronicle.record(outcome(at=1200.0))
    assert await chronicle.flush()
    await _spoil(client, key(name))
    await _look(history)
    for _ in range(2):
        chronicle.record(outcome(at=1200.0))
        assert await chronicle.flush()
    slices, decisions, gateways = await _look(history)
    assert slices[Series("tiny", "prose", "mtp-n3")]["requests"] >= 2
    assert len(decisions) >= 2
    assert set(gateways) == {"g"}


async def _look(history: HistoryStore):
    slices = (await history.slices([ONE_MINUTE]))[ONE_MINUTE]
    await history.happenings()
    return slices, await history.decisions(), await history.gateways()


async def test_unreadable_entries_of_the_history_are_left_out(client, history, capsys):
    chronicle = Chronicle(history, HandClock(), gateway="g", look=Sight)
    chronicle.record(outcome(at=1200.0))
    assert await chronicle.flush()
    bad = {"no series": "1", "[1]|x": "1", "[[],{},1]|x": "2", b"\xff|\xfe": "1", "a\nb": "1"}
    await client.hset(key("history:60:20"), mapping=bad)
    await client.hset(key("history:60:20"), '["tiny","prose","mtp-n3"]|requests', "nan")
    await client.xadd(key("decisions"), {"row": "{"})
    await client.xadd(key("decisions"), {"other": "1"})
    await client.sadd(key("gateways"), b"\xff\xfe", "odd")
    await client.set(key("gateway", "odd"), "[]")
    for _ in range(2):
        slices, decisions, gateways = await _look(history)
    assert list(slices) in ([Series("tiny", "prose", "mtp-n3")], [])
    assert len(decisions) == 1
    assert set(gateways) == {"g"}
    assert capsys.readouterr().out.count("redis_unreadable") == 3
    chronicle.record(outcome(at=1200.0))
    assert await chronicle.flush()


LESSONS = ("samples", "seen", "studied", "answers", "number", "line")


@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.parametrize("junk", [True, False])
async def test_the_classifier_is_shared_whatever_is_unreadable(client, lessons, name, junk):
    await lessons.add_samples([b"1", b"2"])
    await lessons.end_study()
    await lessons.publish(b"line")
    await lessons.tell([Remembered(("k",), "json", 1.0, None)])
    if junk:
        await client.set(key("classifier", name), "junk")
    else:
        await _spoil(client, key("classifier", name))
    await lessons.unstudied()
    await lessons.line()
    await lessons.number()
    await lessons.heard()
    await lessons.samples()
    await lessons.tell([Remembered(("k",), "json", 1.0, None)])
    await lessons.add_samples([b"3", b"4", b"5"])
    await lessons.publish(b"new")
    assert await lessons.unstudied() >= 1  # a count begun anew may be little above the old one
    assert await lessons.line() == b"new"
    assert await lessons.number() >= 1
    assert (await lessons.samples())[-1] == b"5"
