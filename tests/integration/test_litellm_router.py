"""The plugin in a real litellm.Router, and in a real LiteLLM proxy, before scripted workers."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import yaml

from tests.support.simulated import simulator
from tests.support.waiting import until
from workers.scripted import Script

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # read when litellm is imported: no network

MASTER_KEY = "sk-master-key-of-the-tests-0123456789abcdef"
ROOT = Path(__file__).resolve().parents[2]
MESSAGES = [{"role": "user", "content": "Write a JSON list of ten books."}]
SCRIPTS = {  # of the same mode, so that only what was measured tells them apart
    "fast": Script(step_ms=2.0, tokens=40, slots=4),
    "slow": Script(step_ms=12.0, tokens=40, slots=4),
}
pytestmark = [
    pytest.mark.slow,
    # litellm's own imports and clients, which are not ours to repair.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore::UserWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


@pytest.fixture(autouse=True)
def swept():
    """What litellm leaves to the collector is collected here, where it is forgiven."""
    yield
    gc.collect()


def _deployment(name: str, url: str, mode: str) -> dict:
    return {
        "model_name": "tiny",
        "litellm_params": {"model": "openai/tiny", "api_base": f"{url}/v1", "api_key": "-"},
        "model_info": {"id": name, "specroute": {"mode": mode, "slots": 4, "context": 4096}},
    }


@asynccontextmanager
async def deployments(fast: str = "ar"):
    """The stand-ins by name, and LiteLLM's list of them; `fast` is what one is said to run."""
    async with AsyncExitStack() as stack:
        apps, rows = {}, []
        for name, script in SCRIPTS.items():
            apps[name], url = await stack.enter_async_context(simulator(script))
            rows.append(_deployment(name, url, fast if name == "fast" else script.mode))
        yield apps, rows


@pytest.fixture
async def strategy():
    import litellm

    from router.plugins.litellm_router import Strategy

    litellm.disable_aiohttp_transport = True
    made = Strategy()
    litellm.callbacks = [made]
    yield made
    litellm.callbacks = []
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
    await asyncio.sleep(0.01)


async def _ask(router, **fields) -> str:
    answer = await router.acompletion(model="tiny", messages=MESSAGES, **fields)
    if fields.get("stream"):
        async for _ in answer:
            pass
    return str(answer._hidden_params["model_id"])


async def test_a_router_learns_where_this_class_is_fastest(strategy):
    from litellm import Router

    async with deployments() as (_, rows):
        for row in rows:  # where there is no choice it learns all the same
            alone = Router(model_list=[row], num_retries=0)
            for _ in range(10):
                await _ask(alone)
        router = Router(model_list=rows, num_retries=0)
        await until(lambda: strategy.learned == 20, 60.0)  # LiteLLM reports in the background
        chosen = [await _ask(router) for _ in range(10)]
        assert chosen.count("fast") >= 9
        priced = {c.worker: c.estimate for c in strategy.last.candidates}
        assert priced["fast"].decode_s < priced["slow"].decode_s
        assert await _ask(router, stream=True) == "fast"
        # What runs is counted until LiteLLM says that it ended. (In this test, because LiteLLM
        # reports on the event loop that it was first used on.)
        asking = [asyncio.ensure_future(_ask(router, stream=n % 2 == 0)) for n in range(12)]
        await until(lambda: sum(map(len, strategy._running.values())) == 12)
        await asyncio.gather(*asking)
        async with asyncio.timeout(30.0):
            while any(strategy._running.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_what_litellm_leaves_no_choice_about_is_not_touched(strategy):
    rows = [
        _deployment("a", "http://127.0.0.1:1", "ar"),
        _deployment("b", "http://127.0.0.1:1", "ar"),
    ]
    assert await strategy.async_filter_deployments("tiny", rows, None) == rows
    assert await strategy.async_filter_deployments("tiny", rows[:1], MESSAGES) == rows[:1]
    long = [{"role": "user", "content": "word " * 200_000}]
    assert await strategy.async_filter_deployments("tiny", rows, long) == rows
    (one,) = await strategy.async_filter_deployments("tiny", rows, MESSAGES)
    assert one in rows


def test_speeds_are_taken_from_where_they_are_best_known():
    from router.plugins.litellm_router import timings_of

    class Usage:
        prompt_tokens, completion_tokens = 7, 11

    class Answer:
        usage = Usage()

    seen = timings_of(Answer(), timedelta(seconds=0.1))
    assert (seen.prompt_n, seen.predicted_n) == (7, 11)
    assert seen.decode_tokens_per_second == pytest.approx(100.0)
    Answer.timings = {"predicted_n": 5, "predicted_ms": 8.0}
    assert timings_of(Answer(), timedelta(seconds=9)).decode_tokens_per_second == 500.0


def test_the_example_config_names_what_exists():
    from router.plugins import litellm_router

    config = yaml.safe_load((ROOT / "deploy/litellm-proxy.yaml").read_text())
    (name,) = config["litellm_settings"]["callbacks"]
    module, _, attribute = name.rpartition(".")
    assert module == litellm_router.__name__
    assert isinstance(getattr(litellm_router, attribute), litellm_router.Strategy)
    for row in config["model_list"]:
        assert set(row["model_info"]) == {"id", "specroute"}


async def proxy_chooses_the_same_way(tmp_path):
    python = _proxy_environment(tmp_path)
    async with deployments(fast="mtp-n3") as (_, rows):
        config = yaml.safe_load((ROOT / "deploy/litellm-proxy.yaml").read_text())
        path = tmp_path / "proxy.yaml"
        path.write_text(yaml.safe_dump({**config, "model_list": rows}))
        headers = {"authorization": f"Bearer {MASTER_KEY}"}
        client = httpx.AsyncClient(timeout=120.0, headers=headers)
        async with _proxy(python, path) as url, client:
            chosen = []
            for number in range(60):
                body = {"model": "tiny", "messages": MESSAGES, "stream": number % 2 == 0}
                answer = await client.post(f"{url}/v1/chat/completions", json=body)
                assert answer.status_code == 200, answer.text
                chosen.append(answer.headers["x-litellm-model-id"])
                await asyncio.sleep(0.05)
    assert chosen[-10:].count("fast") >= 9


def _proxy_environment(folder: Path) -> str:
    """A Python with LiteLLM's proxy and ours beside it; LITELLM_PYTHON names one that exists."""
    given = os.environ.get("LITELLM_PYTHON")
    if given:
        return given
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = str(folder / "venv/bin/python")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*install, "litellm[proxy]>=1.60", str(ROOT)], check=True)
    return python


@asynccontextmanager
async def _proxy(python: str, config: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = config.with_suffix(".log")
    command = "import litellm; litellm.run_server()"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(python, "-c", command, "--config", str(config), "--port", str(port)),
            *("--host", "127.0.0.1"),
            env={**os.environ, "PYTHONPATH": str(ROOT), "LITELLM_MASTER_KEY": MASTER_KEY},
            stdout=file,
            stderr=file,
        )
    try:
        async with httpx.AsyncClient() as client, asyncio.timeout(240.0):
            while not await _answers(client, f"http://127.0.0.1:{port}/health/liveliness"):
                assert process.returncode is None, log.read_text()[-3000:]
                await asyncio.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _answers(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(url)).status_code == 200
    except httpx.HTTPError:
        return False


if os.environ.get("SPECROUTE_PROOF"):  # installing LiteLLM's proxy takes minutes
    test_a_real_proxy_chooses_the_same_way = proxy_chooses_the_same_way
