"""Servers that somebody else runs, stood in for by the simulator on a real socket."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests.support.serving import served
from tests.support.supervised import Published, host
from tests.support.waiting import until
from workers import attached
from workers.attached import Attached
from workers.registry.base import Verb
from workers.scripted import Script
from workers.simulator import Simulator
from workers.spec import WorkerSpec
from workers.state import WorkerState

S = WorkerState


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(attached, "_LOOK_S", 0.05)


@asynccontextmanager
async def watched(url, tmp_path, **changes):
    published = Published()
    spec = WorkerSpec("w", "m", "dflash2-margin", url=url, slots=1, **changes)
    worker = Attached(spec, host(tmp_path), published)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run(start=True))
        yield worker, published
        worker.stop()
    assert published.last.state is S.STOPPED


async def test_it_is_published_as_it_says_it_is(tmp_path):
    app = Simulator(Script(slots=4, context=1024, api_key="theirs"))
    async with served(app) as url, watched(url, tmp_path, api_key="theirs") as (worker, published):
        ready = await published.reaches(S.READY)
        assert (ready.url, ready.engine, ready.slots, ready.context) == (url, "external", 4, 1024)
        worker.order(Verb.DRAIN)
        await published.reaches(S.DRAINING)
        worker.order(Verb.UNDRAIN)
        await until(lambda: published.states()[-1] == "ready")


async def test_it_may_come_later_go_and_return(tmp_path):
    app = Simulator(Script(load_s=1e9))
    async with served(app) as url, watched(url, tmp_path) as (_, published):
        await until(lambda: published.records and "no healthy server" in published.last.reason)
        app.script = Script()
        await published.reaches(S.READY)
        app.script = Script(load_s=1e9)
        gone = await published.reaches(S.BACKOFF)
        assert gone.reason == f"{url} does not answer"
        app.script = Script()
        await until(lambda: published.last.state is S.READY)
        assert published.last.restarts == 1
        assert published.last.reason == ""
