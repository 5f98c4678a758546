"""Workers on the real engine with the tiny trio: every mode, every way to die.

`LLAMA_SERVER` names a llama-server to run instead of the embedded engine (`make test-engine`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from tests.support.supervised import PATIENCE_S, Published, host
from tests.support.waiting import until
from workers import health
from workers.clock import SystemClock
from workers.engines import ENGINES
from workers.keys import worker_api_key
from workers.registry import open_registry
from workers.spec import NgramSettings, WorkerSpec
from workers.state import WorkerState
from workers.supervisor import Supervisor
from workers.tiny import NO_COST, prepare

pytestmark = [pytest.mark.engine, pytest.mark.slow]

S = WorkerState
LLAMA = ENGINES["llama-server"]
BINARY = os.environ.get("LLAMA_SERVER")
MAYBE_PATCHED = BINARY is not None and not BINARY.endswith("-stock")  # see deploy/llama_server
log = logging.getLogger(__name__)
# What the lookup modes live on: text that repeats, whatever the model would rather say.
REPEATING = {"grammar": 'root ::= ("one two three four five six seven " )+'}


@pytest.fixture(scope="module")
def trio(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("trio"), NO_COST)


def worker(trio, mode, /, **changes):
    draft = trio.draft if "dflash" in mode else None
    values = {
        "name": changes.pop("name", mode),
        "model": "tiny",
        "mode": mode,
        "target": trio.target,
        "draft": draft,
        "binary": Path(BINARY) if BINARY else None,
        "context": 1024,
        "slots": 2,
        "threads": 1,
        "acceptance_floor": 0.0,
    }
    return WorkerSpec(**(values | changes))


@asynccontextmanager
async def running(spec, tmp_path, **changes):
    published = Published()
    supervisor = Supervisor(spec, host(tmp_path, **changes), published)
    async with asyncio.timeout(PATIENCE_S * 3), asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run(start=True))
        await until(
            lambda: published.records and (published.last.state.serves or published.last.reason),
            PATIENCE_S,
        )
        yield supervisor, published
        supervisor.stop()
    assert processes_with(str(tmp_path)) == []


def client_of(record):
    headers = {"authorization": f"Bearer {worker_api_key('secret', record.name)}"}
    return httpx.AsyncClient(base_url=record.url, headers=headers, timeout=60.0)


async def ask(record, **fields):
    """A greedy answer of 96 tokens: its text and its timings."""
    body = {
        "messages": [{"role": "user", "content": "Count from 1 to 40, separated by commas."}],
        "max_tokens": 96,
        "temperature": 0,
        "ignore_eos": True,
    } | fields
    async with client_of(record) as http:
        answer = (await http.post("/v1/chat/completions", json=body)).raise_for_status().json()
    return answer["choices"][0]["message"]["content"], LLAMA.parse_timings(answer)


def processes_with(word):
    """Pids of living processes with that word in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes().decode(errors="replace")
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if word in line and state != "Z":
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize(
    ("mode", "changes", "fields"),
    [
        ("mtp", {"n_max": 5}, {}),
        ("mtp-n3", {}, {}),
        ("mtp-margin", {}, {}),
        ("dflash2", {}, {}),
        ("dflash2-margin", {}, {}),
        ("ngram-mod", {"ngram": NgramSettings(n_match=8), "n_min": 1, "n_max": 16}, REPEATING),
        ("ngram-map-k4v", {"ngram": NgramSettings(size_n=4, size_m=8)}, REPEATING),
        ("ngram-simple", {"ngram": NgramSettings(size_n=4, size_m=8)}, REPEATING),
    ],
)
async def test_each_speculative_mode_drafts(trio, tmp_path, mode, changes, fields):
    async with running(worker(trio, mode, **changes), tmp_path) as (_, published):
        record = published.last
        assert record.state is S.READY, record.reason
        assert (record.effective_mode, record.slots, record.context) == (mode, 2, 1024)
        assert record.arms == () or MAYBE_PATCHED  # else it ignores a request's draft length
        _, timings = await ask(record, **fields)
        log.info("%s accepts %s of %s", mode, timings.draft_n_accepted, timings.draft_n)
        assert timings.draft_n
        assert timings.acceptance_rate is not None
        assert timings.acceptance_rate > 0.1
        async with client_of(record) as http:
            slots = (await http.get("/slots")).json()
        assert [slot["speculative"] for slot in slots] == [True, True]


async def test_a_separate_draft_model(trio, tmp_path):
    spec = worker(trio, "draft", draft=trio.target, n_max=4)
    async with running(spec, tmp_path) as (_, published):
        assert published.last.state is S.READY, published.last.reason
        _, timings = await ask(published.last)
        log.info("draft accepts %s of %s", timings.draft_n_accepted, timings.draft_n)
        # The draft is the target itself: what it proposes is what is wanted, but for near ties,
        # which fall differently in a batch of one and of five.
        assert timings.acceptance_rate is not None
        assert timings.acceptance_rate > 0.7


async def test_plain_work_drafts_nothing_and_all_modes_say_the_same(trio, tmp_path):
    texts = {}
    for mode in ("ar", "mtp-n3", "dflash2"):
        async with running(worker(trio, mode), tmp_path / mode) as (_, published):
            assert published.last.state is S.READY, published.last.reason
            texts[mode], timings = await ask(published.last)
            assert (timings.draft_n is None) == (mode == "ar")
    assert len(set(texts.values())) == 1, texts


async def test_kill_9_of_a_worker_is_repaired(trio, tmp_path):
    async with running(worker(trio, "mtp-n3"), tmp_path) as (_, published):
        first, seen = published.last, len(published.records)
        os.kill(first.pid, signal.SIGKILL)
        down = await published.reaches(S.BACKOFF, seen)
        again = await published.reaches(S.READY, published.records.index(down))
        assert again.pid != first.pid
        states = published.states()
        repair = states[states.index("backoff") :]
        assert repair[:2] == ["backoff", "starting"]  # a fast machine never shows it loading
        assert repair[-1] == "ready"
        assert (await ask(again))[0] == (await ask(again))[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"args": ("--no-such-flag",)}, "does not know --no-such-flag"),
        ({"args": ("-ctk", "q7_9")}, "bad flag"),
        ({"target": Path("/nowhere/m.gguf")}, "/nowhere/m.gguf cannot be read"),
        ({"mode": "dflash2", "draft": Path(__file__)}, "model file cannot be loaded"),
    ],
)
async def test_what_cannot_work_is_told_in_a_sentence(trio, tmp_path, changes, words):
    async with running(worker(trio, "ar", name="w", **changes), tmp_path) as (_, published):
        record = published.last
        assert record.state in (S.FAILED, S.BACKOFF, S.QUARANTINED)
        assert words in record.reason
        assert "\n" not in record.reason
        assert record.reason


async def test_a_port_in_use_is_told_and_tried_again(trio, tmp_path):
    blocker = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    port = blocker.sockets[0].getsockname()[1]
    async with running(worker(trio, "ar", port=port), tmp_path) as (_, published):
        assert "port in use" in published.last.reason
        blocker.close()
        await blocker.wait_closed()
        await published.reaches(S.READY)


def agent_process(tmp_path, trio, redis_url):
    """`python -m workers` with the three modes, as an operator would start it."""
    common = {"model": "tiny", "context": 512, "threads": 1, "acceptance_floor": 0.0}
    if BINARY:
        common["binary"] = BINARY
    document = {
        "redis": {"url": redis_url},
        "models": [{"name": "tiny", "target": str(trio.target)}],
        "workers": [
            {"name": "dflash", "mode": "dflash2", "draft": str(trio.draft), **common},
            {"name": "mtp", "mode": "mtp-n3", **common},
            {"name": "plain", "mode": "ar", **common},
        ],
    }
    path = tmp_path / "specroute.yaml"
    path.write_text(yaml.safe_dump(document))
    argv = [
        sys.executable,
        "-m",
        "workers",
        "-c",
        str(path),
        "--state-dir",
        str(tmp_path / "state"),
    ]
    with (tmp_path / "agent.log").open("wb") as log:
        return subprocess.Popen(
            argv,
            stdout=log,
            stderr=log,
            env=os.environ | {"SPECROUTE_AUTH__CLUSTER_SECRET": "secret"},
        )


async def all_ready(registry):
    async with aclosing(registry.watch()) as views:
        async for records in views:
            if sum(record.state is S.READY for record in records) == 3:
                return


@asynccontextmanager
async def agent(tmp_path, trio, redis_url):
    process = agent_process(tmp_path, trio, redis_url)
    registry = open_registry(redis_url, "secret", SystemClock())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await all_ready(registry)
        yield process, registry
    finally:
        process.kill()
        process.wait()
        await registry.aclose()


async def test_sigterm_of_the_agent_leaves_nothing(trio, tmp_path, redis_url):
    async with agent(tmp_path, trio, redis_url) as (process, registry):
        assert len(processes_with(str(tmp_path / "state"))) == 4
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 20) == 0
        assert processes_with(str(tmp_path / "state")) == []
        assert await registry.list() == ()


async def test_kill_9_of_the_agent_leaves_nothing_after_two_seconds(trio, tmp_path, redis_url):
    async with agent(tmp_path, trio, redis_url) as (process, _):
        assert len(processes_with(str(tmp_path / "state"))) == 4
        process.send_signal(signal.SIGKILL)
        process.wait()
        await until(lambda: not processes_with(str(tmp_path / "state")), 2.0)


async def test_the_engine_counts_its_drafts_as_the_answers_do(trio, tmp_path):
    """What tells in service that drafts have vanished (workers/drafting.py)."""
    async with running(worker(trio, "mtp-n3"), tmp_path) as (_, published):
        record = published.last
        async with client_of(record) as http:
            before = await health.draft_counts(http, LLAMA.routes)
            _, timings = await ask(record)
            found = (await health.draft_counts(http, LLAMA.routes)).since(before)
    assert found.predicted == timings.predicted_n
    assert found.drafted == timings.draft_n > 0
    assert found.accepted == timings.draft_n_accepted
