"""The patched llama-server on the tiny trio: every draft length from one process, per request."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.gateway import SECRET, gateway
from tests.support.supervised import PATIENCE_S, Published, host
from tests.support.waiting import until
from workers.arms import N_MAX, P_MIN
from workers.engines import ENGINES
from workers.keys import worker_api_key
from workers.spec import WorkerSpec
from workers.supervisor import Supervisor
from workers.tiny import NO_COST, prepare

BINARY = Path(os.environ["LLAMA_SERVER_PATCHED"])
LLAMA = ENGINES["llama-server"]
PROMPTS = (
    "Count from 1 to 40, separated by commas.",
    "Write a JSON object with the keys name, age, city and job.",
    "Tell me a short story about a fox and the sea.",
)


@pytest.fixture(scope="module")
def trio(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("trio"), NO_COST)


@asynccontextmanager
async def running(trio, tmp_path, mode, **changes):
    """The record of one worker of the patched build."""
    values = {
        "target": trio.target,
        "draft": trio.draft if "dflash" in mode else None,
        "binary": BINARY,
        "context": 1024,
        "slots": 2,
        "threads": 1,
        "acceptance_floor": 0.0,
    }
    spec, published = WorkerSpec(mode, "tiny", mode, **(values | changes)), Published()
    supervisor = Supervisor(spec, host(tmp_path, cluster_secret=SECRET), published)
    async with asyncio.timeout(PATIENCE_S * 3), asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run(start=True))
        await until(lambda: published.records and published.last.state.serves, PATIENCE_S)
        yield published.last
        supervisor.stop()


async def ask(record, prompt, tokens=96, **fields):
    """A greedy answer: its text and timings."""
    messages = [{"role": "user", "content": prompt}]
    body = {"messages": messages, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    payload = await post(record, "/v1/chat/completions", body | fields)
    return payload["choices"][0]["message"]["content"], LLAMA.parse_timings(payload)


async def complete(record, prompt, tokens, **fields):
    """llama-server's own completion of a text or of tokens."""
    body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": True}
    return await post(record, "/completion", body | {"return_tokens": True} | fields)


async def tokens_of(record, text):
    """As the server reads it at the beginning of a prompt."""
    body = {"content": text, "add_special": True}
    return (await post(record, "/tokenize", body))["tokens"]


async def post(record, path, body):
    headers = {"authorization": f"Bearer {worker_api_key(SECRET, record.name)}"}
    async with httpx.AsyncClient(base_url=record.url, headers=headers, timeout=60.0) as http:
        return (await http.post(path, json=body)).raise_for_status().json()


def modes(record):
    return {record.effective_mode, *(arm.mode for arm in record.arms)}


@pytest.mark.parametrize(
    ("mode", "changes", "names"),
    [
        ("dflash2", {}, {"dflash2", "dflash2-n3", "ar"}),
        ("dflash2-margin", {}, {"dflash2-margin", "dflash2-margin-n3", "ar"}),
        ("mtp", {"n_max": 7}, {"mtp", "mtp-n3", "ar"}),
        ("mtp-n3", {}, {"mtp-n3", "ar"}),
    ],
)
async def test_one_process_serves_every_length(trio, tmp_path, mode, changes, names):
    async with running(trio, tmp_path, mode, **changes) as record:
        assert modes(record) == names
        most = 3 if mode == "mtp-n3" else 7
        for prompt in PROMPTS:
            texts, drafted = set(), {}
            for length in (0, 3, 7, None):
                fields = {} if length is None else {N_MAX: length}
                text, timings = await ask(record, prompt, **fields)
                texts.add(text)
                drafted[length] = timings.draft_n or 0
                assert drafted[length] <= min(most, 7 if length is None else length) * timings.steps
            assert len(texts) == 1, (prompt, texts)
            assert drafted[0] == 0
            assert drafted[3] > 0
            assert drafted[7] >= drafted[3] or mode.endswith("margin")
            assert drafted[None] == drafted[7]


async def test_lengths_side_by_side_do_not_disturb_each_other(trio, tmp_path):
    async with running(trio, tmp_path, "dflash2") as record:
        alone = {length: await ask(record, PROMPTS[0], 160, **{N_MAX: length}) for length in (0, 7)}
        both = await asyncio.gather(
            ask(record, PROMPTS[0], 160, **{N_MAX: 0}), ask(record, PROMPTS[0], 160, **{N_MAX: 7})
        )
        assert {text for text, _ in both} == {text for text, _ in alone.values()}
        assert [timings.draft_n is None for _, timings in both] == [True, False]


async def test_p_min_cuts_and_is_never_below_the_workers_own(trio, tmp_path):
    async with running(trio, tmp_path, "dflash2", p_min=0.5) as record:
        counts = {}
        for cut in (0.0, 0.5, 0.95):
            _, timings = await ask(record, PROMPTS[2], **{P_MIN: cut})
            counts[cut] = timings.draft_n or 0
        assert counts[0.0] == counts[0.5] > counts[0.95]


@pytest.mark.parametrize("mode", ["dflash2", "mtp-n3"])
async def test_a_drafter_knows_what_was_said_while_it_did_not_draft(trio, tmp_path, mode):
    rates = {}
    async with running(trio, tmp_path, mode, slots=1) as record:
        for length in (0, 7):
            first = await complete(record, "One, two, three, four, five,", 100, **{N_MAX: length})
            said = [*await tokens_of(record, "One, two, three, four, five,"), *first["tokens"]]
            timings = (await complete(record, said, 96))["timings"]
            assert timings["cache_n"] > 90
            rates[length] = timings["draft_n_accepted"] / timings["draft_n"]
    assert rates[0] == pytest.approx(rates[7], abs=0.02)


async def test_a_gateway_asks_for_arms_by_mode_and_learns_each(trio, tmp_path):
    async with running(trio, tmp_path, "dflash2") as record, gateway(record) as gate:
        for mode in ("ar", "dflash2-n3", "dflash2"):
            asked = {"x-specroute-mode": mode}
            answer = await gate.chat(PROMPTS[0], headers=asked, max_tokens=48, temperature=0)
            assert answer.headers["x-specroute-mode"] == mode
        own = await gate.chat(PROMPTS[0], max_tokens=48, temperature=0, **{N_MAX: 1})
        assert own.status_code == 200
        await until(lambda: len(gate.outcomes) == 4)
        told = {outcome.mode: outcome.timings for outcome in gate.outcomes}
        assert set(told) == {"ar", "dflash2-n3", "dflash2", "custom"}
        assert told["ar"].draft_n is None
        assert told["dflash2"].draft_n > told["dflash2-n3"].draft_n > told["custom"].draft_n > 0
        rows = gate.app.parts.services.fleet.view("tiny").workers[0].record.arms
        assert [arm.n_max for arm in rows] == [0, 3]
