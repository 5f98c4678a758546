"""Send jobs to a URL and time what comes back: one Sample a request."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import orjson

from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from router.bench.workload import Prompt
    from workers.clock import Clock


@dataclass(frozen=True, slots=True)
class Job:
    """One request to one target: what to send and how to name it in the table."""

    target: str
    prompt: Prompt
    model: str
    round: int
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Sample:
    """What one request measured. Seconds; `error` is empty on success."""

    job: Job
    error: str = ""
    total_s: float = 0.0
    ttft_s: float | None = None
    worker: str = ""
    mode: str = ""
    workload_class: str = ""  # as the gateway classified it
    thought: bool = False  # reasoning tokens were seen
    timings: Timings = field(default_factory=Timings)


async def run_jobs(
    url: str,
    jobs: Sequence[Job],
    *,
    clock: Clock,
    concurrency: int = 1,
    headers: dict[str, str] | None = None,
    on_sample: Callable[[Sample], None] | None = None,
) -> list[Sample]:
    """Run `jobs` in their order with at most `concurrency` at once; answers in the same order."""
    gate = asyncio.Semaphore(concurrency)
    results: dict[int, Sample] = {}

    async def work(index: int, job: Job, client: httpx.AsyncClient) -> None:
        async with gate:
            results[index] = await _run_one(client, job, clock)
        if on_sample is not None:
            on_sample(results[index])

    timeout = httpx.Timeout(600.0, connect=10.0)
    # llama-server closes connections that it says it keeps: a request on one of them would fail.
    limits = httpx.Limits(max_keepalive_connections=0)
    async with (
        httpx.AsyncClient(base_url=url, timeout=timeout, headers=headers, limits=limits) as client,
        asyncio.TaskGroup() as tasks,
    ):
        for index, job in enumerate(jobs):
            tasks.create_task(work(index, job, client))
    return [results[index] for index in range(len(jobs))]


async def _run_one(client: httpx.AsyncClient, job: Job, clock: Clock) -> Sample:
    body = job.prompt.body(job.model, max_tokens=job.max_tokens, seed=job.seed)
    started = clock.monotonic()
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                text = (await response.aread()).decode("utf-8", "replace")
                return Sample(job, error=f"HTTP {response.status_code}: {text[:300]}")
            return await _read_stream(response, job, started, clock)
    except httpx.HTTPError as error:
        return Sample(job, error=f"{type(error).__name__}: {error}")


async def _read_stream(response: httpx.Response, job: Job, started: float, clock: Clock) -> Sample:
    ttft: float | None = None
    thought, timings, error = False, Timings(), ""
    async for line in response.aiter_lines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        event = orjson.loads(line[6:])
        if "error" in event:
            error = str(event["error"].get("message", event["error"]))
        delta = _delta(event)
        thought = thought or bool(delta.get("reasoning_content"))
        if ttft is None and (delta.get("content") or delta.get("reasoning_content")):
            ttft = clock.monotonic() - started
        if "timings" in event:
            timings = Timings.from_payload(event["timings"])
    return Sample(
        job,
        error=error,
        total_s=clock.monotonic() - started,
        ttft_s=ttft,
        worker=response.headers.get("x-specroute-worker", ""),
        mode=response.headers.get("x-specroute-mode", ""),
        workload_class=response.headers.get("x-specroute-class", ""),
        thought=thought,
        timings=timings,
    )


def _delta(event: dict[str, Any]) -> dict[str, Any]:
    choices = event.get("choices") or [{}]
    delta = choices[0].get("delta")
    return delta if isinstance(delta, dict) else {}
