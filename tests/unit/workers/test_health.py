from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.serving import served
from workers import health
from workers.engines import ENGINES, Routes
from workers.health import Health, ProbeFailed, judge_probe
from workers.scripted import Script
from workers.simulator import Simulator
from workers.spec import WorkerSpec
from workers.timings import Timings

ENGINE = ENGINES["llama-server"]
ROUTES = Routes()


def spec(mode="mtp-n3", **changes):
    return WorkerSpec("w", "m", mode, **changes)


async def looked(script, key="k"):
    async with served(Simulator(script)) as url, health.client(url, key) as http:
        return await health.look(http, ROUTES)


async def test_a_loaded_worker_tells_its_size():
    found = await looked(Script(slots=3, context=512, api_key="k"))
    assert found == Health(True, True, slots=3, context=512, build="simulated", vision=False)


async def test_a_loading_worker_answers_and_is_not_loaded():
    assert await looked(Script(load_s=1e9)) == Health(answers=True)


async def test_without_its_key_less_is_known():
    assert await looked(Script(api_key="k"), key=None) == Health(answers=True, loaded=True)


async def test_nobody_there():
    async with health.client("http://127.0.0.1:9", "k") as http:
        assert await health.look(http, ROUTES) == Health(answers=False)
        assert await health.busy_slots(http, ROUTES) is None
        with pytest.raises(ProbeFailed, match="ConnectError"):
            await health.start_probe(http, ENGINE, spec(), 5.0)


async def test_busy_slots_are_counted():
    app = Simulator(Script(slots=3))
    app.busy = 2
    async with served(app) as url, health.client(url, None) as http:
        assert await health.busy_slots(http, ROUTES) == 2
        assert await health.busy_slots(http, Routes(slots=None)) is None
        assert await health.busy_slots(http, Routes(slots="/props")) is None


@pytest.mark.parametrize(
    ("script", "speculates", "words"),
    [
        (Script(mode="mtp-n3", n_max=3, acceptance=0.5), True, ""),
        (Script(mode="mtp-n3", n_max=3, acceptance=0.0), False, "in vain: 0 of 189"),
        (Script(mode="ar"), False, "64 greedy tokens and nothing drafted"),
    ],
)
async def test_the_start_probe(script, speculates, words):
    app = Simulator(script)
    async with served(app) as url, health.client(url, None) as http:
        probe = await health.start_probe(http, ENGINE, spec(), 5.0)
    assert probe.speculates is speculates
    assert words in probe.reason
    assert not probe.obeys
    body = app.bodies[0]
    assert (body["max_tokens"], body["temperature"]) == (64, 0)


async def test_a_build_that_lets_requests_choose_is_recognised():
    script = Script(mode="dflash2", n_max=7, acceptance=0.5)
    for obeys in (True, False):
        app = Simulator(replace(script, obeys=obeys))
        async with served(app) as url, health.client(url, None) as http:
            probe = await health.start_probe(http, ENGINE, spec("dflash2"), 5.0)
        assert (probe.speculates, probe.obeys) == (True, obeys)
        assert [body.get("speculative.n_max") for body in app.bodies] == [None, 0]


async def test_a_worker_without_arms_is_not_asked_for_them():
    app = Simulator(Script(mode="dflash2", n_max=7, acceptance=0.5, obeys=True))
    async with served(app) as url, health.client(url, None) as http:
        probe = await health.start_probe(http, ENGINE, spec("dflash2", arms=()), 5.0)
    assert (len(app.bodies), probe.obeys) == (1, False)


@pytest.mark.parametrize("fault", ["error", "close", "garbage"])
async def test_a_probe_that_gets_no_answer(fault):
    async with served(Simulator(Script(fault=fault))) as url, health.client(url, None) as http:
        with pytest.raises(ProbeFailed, match="the probe"):
            await health.start_probe(http, ENGINE, spec(), 5.0)


@pytest.mark.parametrize(
    ("worker", "timings", "speculates"),
    [
        (spec("ar"), Timings(predicted_n=64), True),
        (spec("ngram-mod"), Timings(predicted_n=64), True),
        (spec("dflash2"), Timings(predicted_n=64, draft_n=0), False),
        (spec("dflash2"), Timings(predicted_n=64, draft_n=100, draft_n_accepted=4), False),
        (spec("dflash2"), Timings(predicted_n=64, draft_n=100, draft_n_accepted=5), True),
        (spec("dflash2", acceptance_floor=0.0), Timings(draft_n=9, draft_n_accepted=0), True),
        (spec("dflash2"), Timings(draft_n=9), False),
    ],
)
def test_what_counts_as_speculating(worker, timings, speculates):
    assert judge_probe(worker, timings).speculates is speculates


async def test_sightings_of_a_serving_worker():
    app = Simulator(Script(slots=2))
    async with served(app) as url, health.client(url, None) as http:
        idle = await health.sight(http, ROUTES, 5.0, 1.5)
        assert (idle.at, idle.answered, idle.busy, idle.cpu) == (5.0, True, False, 1.5)
        app.busy = 1
        first = await health.sight(http, ROUTES, 6.0, None)
        app.sent = 1
        second = await health.sight(http, ROUTES, 7.0, None)
        assert first.busy
        assert first.progress != second.progress
        by_health = await health.sight(http, Routes(slots=None), 8.0, None)
        assert (by_health.answered, by_health.busy) == (True, False)
    async with health.client("http://127.0.0.1:9", None) as http:
        assert not (await health.sight(http, ROUTES, 9.0, None)).answered
