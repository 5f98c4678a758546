"""A worker's life, on real processes of the simulated engine."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.support.supervised import PATIENCE_S, Published, host, simulated
from tests.support.waiting import until
from workers.keys import worker_api_key
from workers.process import free_port
from workers.registry.base import Verb
from workers.state import WorkerState
from workers.supervisor import Supervisor
from workers.watchdog import Patience

pytestmark = pytest.mark.slow

S = WorkerState


@asynccontextmanager
async def supervised(spec, tmp_path, *, start=True, **changes):
    published = Published()
    supervisor = Supervisor(spec, host(tmp_path, **changes), published)
    async with asyncio.timeout(PATIENCE_S * 3), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(supervisor.run(start=start))
        yield supervisor, published
        supervisor.stop()
        await running
    assert supervisor.status.state is S.STOPPED
    assert not pids_alive(published)


def pids_alive(published):
    pids = {record.pid for record in published.records if record.pid}
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def client_of(record):
    headers = {"authorization": f"Bearer {worker_api_key('secret', record.name)}"}
    return httpx.AsyncClient(base_url=record.url, headers=headers, timeout=30.0)


async def test_from_start_to_stop(tmp_path):
    async with supervised(simulated(slots=3, context=512), tmp_path) as (_, published):
        ready = await published.reaches(S.READY)
        assert (ready.effective_mode, ready.reason, ready.slots) == ("mtp-n3", "", 3)
        assert ready.context == 512
        assert ready.progress == 1.0
        assert ready.pid
        assert ready.started_at > 0
        assert "secret" not in " ".join(ready.argv)
        assert worker_api_key("secret", "w") not in " ".join(ready.argv)
        async with client_of(ready) as http:
            assert (await http.get("/props")).status_code == 200
    assert published.states() == ["starting", "ready", "draining", "stopped"]
    assert published.last.pid is None


async def test_loading_is_published_before_ready(tmp_path):
    slow = simulated(script={"load_s": 0.5})
    async with supervised(slow, tmp_path) as (_, published):
        await published.reaches(S.READY)
    assert published.states()[:3] == ["starting", "loading", "ready"]


async def test_a_speculative_worker_that_does_not_speculate_is_degraded(tmp_path):
    vain = simulated(script={"acceptance": 0.0})
    async with supervised(vain, tmp_path) as (supervisor, published):
        degraded = await published.reaches(S.DEGRADED)
        assert degraded.effective_mode == "ar"
        assert "in vain" in degraded.reason
        supervisor.order(Verb.DRAIN)
        await published.reaches(S.DRAINING)
        supervisor.order(Verb.UNDRAIN)
        await published.reaches(S.DEGRADED, len(published.records))
    assert "ready" not in published.states()


async def test_kill_9_brings_a_new_process(tmp_path):
    async with supervised(simulated(), tmp_path) as (_, published):
        first = await published.reaches(S.READY)
        seen = len(published.records)
        os.kill(first.pid, signal.SIGKILL)
        again = await published.reaches(S.READY, seen)
        backoff = await published.reaches(S.BACKOFF)
        assert "SIGKILL" in backoff.reason
        assert again.pid != first.pid
        assert (again.restarts, again.reason) == (1, "")


async def test_a_crash_loop_ends_in_quarantine_until_somebody_loads_it(tmp_path):
    bad = replace(simulated(), args=("--script", "{nonsense"))
    async with supervised(bad, tmp_path) as (supervisor, published):
        quarantined = await published.reaches(S.QUARANTINED)
        assert quarantined.reason.startswith("3 crashes within 120 s, the last one: ended with")
        assert "error" in quarantined.reason
        assert published.states()[-4:] == ["starting", "backoff", "starting", "quarantined"]
        seen = len(published.records)
        supervisor.order(Verb.LOAD)
        await published.reaches(S.STARTING, seen)
        await published.reaches(S.QUARANTINED, seen)


async def test_a_missing_file_is_one_sentence_and_is_not_tried_again(tmp_path):
    spec = replace(simulated(), target=tmp_path / "absent.gguf")
    async with supervised(spec, tmp_path) as (_, published):
        failed = await published.reaches(S.FAILED)
        assert (
            failed.reason == f"{tmp_path / 'absent.gguf'} cannot be read: No such file or directory"
        )
    assert published.states() == ["failed", "stopped"]


async def test_a_worker_that_never_loads_is_given_up(tmp_path):
    spec = simulated(script={"load_s": 1e9}, load_timeout=3.0)
    async with supervised(spec, tmp_path) as (_, published):
        backoff = await published.reaches(S.BACKOFF)
        assert backoff.reason == "not loaded after 3 s (load_timeout)"


async def test_a_probe_without_an_answer_is_a_crash(tmp_path):
    spec = simulated(script={"fault": "error"})
    async with supervised(spec, tmp_path) as (_, published):
        backoff = await published.reaches(S.BACKOFF)
        assert "the probe was answered with 500" in backoff.reason


async def test_a_taken_port_is_told_and_tried_again(tmp_path):
    port = free_port("127.0.0.1")
    blocker = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", port)
    async with supervised(simulated(port=port), tmp_path, backoff=host(tmp_path).backoff) as (
        _,
        published,
    ):
        backoff = await published.reaches(S.BACKOFF)
        assert "port in use" in backoff.reason
        blocker.close()
        await blocker.wait_closed()
        await published.reaches(S.READY)


async def test_drain_and_undrain(tmp_path):
    async with supervised(simulated(), tmp_path) as (supervisor, published):
        ready = await published.reaches(S.READY)
        supervisor.order(Verb.UNDRAIN)  # nothing to undo
        supervisor.order(Verb.LOAD)  # it runs
        supervisor.order(Verb.DRAIN)
        supervisor.order(Verb.UNDRAIN)
        again = await published.reaches(S.READY, len(published.records) and 3)
        await until(lambda: published.states()[-2:] == ["draining", "ready"], PATIENCE_S)
        assert again.pid == ready.pid


async def slow_stream(http, step_ms, until_first):
    """The lines of a slow answer; `until_first` is called after the first of them."""
    await http.put("/script", json={"step_ms": step_ms})
    ask = {"messages": [], "max_tokens": 60, "stream": True}
    lines = []
    async with http.stream("POST", "/v1/chat/completions", json=ask) as answer:
        async for line in answer.aiter_lines():
            if not lines:
                until_first()
            lines.append(line)
    return lines


async def test_unload_waits_for_running_requests(tmp_path):
    async with supervised(simulated(mode="ar"), tmp_path) as (supervisor, published):
        ready = await published.reaches(S.READY)
        async with client_of(ready) as http:
            lines = await slow_stream(http, 20.0, lambda: supervisor.order(Verb.UNLOAD))
        assert lines[-2] == "data: [DONE]"
        stopped = await published.reaches(S.STOPPED)
        assert stopped.pid is None
        seen = len(published.records)
        supervisor.order(Verb.LOAD)
        assert (await published.reaches(S.READY, seen)).pid != ready.pid
        seen = len(published.records)
        supervisor.order(Verb.RESTART)
        await published.reaches(S.READY, seen)
        assert published.states()[-4:] == ["draining", "stopped", "starting", "ready"]


async def test_what_was_drained_comes_back_drained(tmp_path):
    async with supervised(simulated(mode="ar"), tmp_path) as (worker, published):
        first = await published.reaches(S.READY)
        worker.order(Verb.DRAIN)
        await published.reaches(S.DRAINING)
        crashed = len(published.records)
        os.kill(first.pid, signal.SIGKILL)
        await published.reaches(S.DRAINING, after=crashed)
        assert published.last.held
        worker.order(Verb.UNDRAIN)
        await until(lambda: published.last.state is S.READY, PATIENCE_S)
        assert not published.last.held


async def test_a_drained_member_of_a_group_is_not_started_beside_the_other(tmp_path):
    member = replace(simulated(mode="ar"), exclusive_group="gpu")
    async with supervised(member, tmp_path) as (worker, published):
        await published.reaches(S.READY)
        worker.order(Verb.DRAIN)
        worker.order(Verb.UNLOAD)  # the other one needs its memory
        await published.reaches(S.STOPPED)
        assert published.last.held
        worker.order(Verb.UNDRAIN)
        await until(lambda: not published.last.held, PATIENCE_S)
        worker.order(Verb.PROBE)
        await until(lambda: worker._inbox.empty(), PATIENCE_S)
        assert published.last.state is S.STOPPED
        worker.order(Verb.LOAD)
        await until(lambda: published.last.state is S.READY, PATIENCE_S)


async def test_a_drain_has_an_end(tmp_path):
    worker = supervised(simulated(mode="ar"), tmp_path, drain_timeout=0.5, stop_timeout=0.5)
    async with worker as (supervisor, published):
        async with client_of(await published.reaches(S.READY)) as http:
            with pytest.raises(httpx.HTTPError):
                await slow_stream(http, 5000.0, lambda: supervisor.order(Verb.UNLOAD))
        await published.reaches(S.STOPPED)


async def test_it_can_wait_to_be_loaded(tmp_path):
    async with supervised(simulated(), tmp_path, start=False) as (supervisor, published):
        supervisor.order(Verb.UNLOAD)
        await published.reaches(S.STOPPED)
        supervisor.order(Verb.LOAD)
        await published.reaches(S.READY)


async def test_cancelling_leaves_no_process(tmp_path):
    published = Published()
    supervisor = Supervisor(simulated(), host(tmp_path), published)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(supervisor.run(start=True))
        await published.reaches(S.READY)
        running.cancel()
    await until(lambda: not pids_alive(published), PATIENCE_S)


async def test_a_frozen_worker_is_found_killed_and_replaced(tmp_path):
    patience = Patience(frozen=1.0)
    async with supervised(simulated(), tmp_path, patience=patience, stop_timeout=0.3) as (
        _,
        published,
    ):
        first = await published.reaches(S.READY)
        seen = len(published.records)
        os.kill(first.pid, signal.SIGSTOP)
        again = await published.reaches(S.READY, seen)
        backoff = await published.reaches(S.BACKOFF)
        assert "answered nothing and used no processor time" in backoff.reason
        assert again.pid != first.pid


async def test_a_stream_that_stands_still_is_found_though_health_is_fine(tmp_path):
    patience = Patience(stuck=1.0)
    async with supervised(simulated(), tmp_path, patience=patience, stop_timeout=0.3) as (
        _,
        published,
    ):
        first = await published.reaches(S.READY)
        async with client_of(first) as http:
            await http.put("/script", json={"fault": "stall"})
            with pytest.raises(httpx.HTTPError):
                await http.post("/v1/chat/completions", json={"messages": []})
        backoff = await published.reaches(S.BACKOFF)
        assert "made no progress" in backoff.reason


async def answers_until(record, state, published, script):
    """Traffic under `script` until the worker is published in that state."""
    seen = len(published.records)
    ask = {"messages": [], "max_tokens": 400}
    async with client_of(record) as http:
        await http.put("/script", json=script)
        async with asyncio.timeout(PATIENCE_S):
            while not any(r.state is state for r in published.records[seen:]):
                (await http.post("/v1/chat/completions", json=ask)).raise_for_status()
                await asyncio.sleep(0.1)
    return await published.reaches(state, seen)


async def test_drafts_that_vanish_in_service_degrade_it_until_they_are_back(tmp_path):
    async with supervised(simulated(), tmp_path) as (_, published):
        ready = await published.reaches(S.READY)
        degraded = await answers_until(ready, S.DEGRADED, published, {"n_max": 0})
        assert degraded.effective_mode == "ar"
        assert "mode mtp-n3 no longer speculates: nothing drafted in the last" in degraded.reason
        again = await answers_until(ready, S.READY, published, {"n_max": 3})
        assert (again.effective_mode, again.reason, again.pid) == ("mtp-n3", "", ready.pid)


async def test_acceptance_that_stays_under_its_floor_degrades_it(tmp_path):
    async with supervised(simulated(acceptance_floor=0.2), tmp_path) as (_, published):
        ready = await published.reaches(S.READY)
        degraded = await answers_until(ready, S.DEGRADED, published, {"acceptance": 0.1})
        assert degraded.effective_mode == "ar"
        assert "speculates in vain" in degraded.reason
        assert "(floor 20%)" in degraded.reason


async def test_a_doubted_worker_that_answers_errors_is_replaced(tmp_path):
    async with supervised(simulated(mode="ar"), tmp_path) as (supervisor, published):
        first = await published.reaches(S.READY)
        seen = len(published.records)
        async with client_of(first) as http:
            await http.put("/script", json={"fault": "error"})
        supervisor.order(Verb.PROBE)
        again = await published.reaches(S.READY, seen)
        assert again.pid != first.pid
        assert "the probe was answered with 500" in again.crash


async def test_a_doubted_worker_that_is_well_or_only_slow_is_left_alone(tmp_path):
    well = supervised(simulated(mode="ar"), tmp_path, probe_timeout=0.5)
    async with well as (supervisor, published):
        first = await published.reaches(S.READY)
        supervisor.order(Verb.PROBE)
        async with client_of(first) as http:
            await until(lambda: not supervisor._inbox.qsize(), PATIENCE_S)
            await http.put("/script", json={"step_ms": 5000.0})
            supervisor._asked_at = float("-inf")
            supervisor.order(Verb.PROBE)
            await asyncio.sleep(2.0)
            await http.put("/script", json={"step_ms": 0.0})
        assert published.last.pid == first.pid
        assert published.last.state is S.READY
