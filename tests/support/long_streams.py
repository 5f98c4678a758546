"""Clients that keep long streams open, and what became of each stream."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import orjson

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RETRIES = 2  # of the openai SDKs, for what failed before an answer began
PAUSE_S = 0.5
_BEFORE_AN_ANSWER = (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError)
PROMPTS = (
    "Count from 1 to 500.",
    "Write a story about a lighthouse keeper and her dog.",
    'Write a JSON list of books with the keys "title" and "year".',
    "Explain why the sea is salty, step by step.",
)


@dataclass
class Streams:
    """Counts: `whole` ended with [DONE] and every token; `cut` did not, without a word; `failed`
    ended with an error event; `refused` got no stream even after the SDK's retries."""

    outcomes: Counter[str] = field(default_factory=Counter)
    retried: int = 0
    tokens: int = 0
    open: int = 0
    workers: Counter[str] = field(default_factory=Counter)
    # By client, just now: whose stream it reads, and how many events of it have come.
    reading: dict[int, tuple[str, int]] = field(default_factory=dict)
    finished: Counter[int] = field(default_factory=Counter)  # streams by client
    reasons: list[str] = field(default_factory=list)
    # When a stream was asked for and when it began (monotonic s), and whose it was.
    begun: list[tuple[float, float, str]] = field(default_factory=list)

    def __sub__(self, earlier: Counter[str]) -> Counter[str]:
        return self.outcomes - earlier

    def early(self, events: int) -> Counter[str]:
        """Streams by worker that have begun to come, with fewer than so many events so far."""
        return Counter(worker for worker, seen in self.reading.values() if 0 < seen < events)


@asynccontextmanager
async def long_streams(url: str, key: str, count: int, tokens: int) -> AsyncIterator[Streams]:
    """`count` clients, each opening the next stream when one has ended; all end inside."""
    streams = Streams()
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(_client(url, key, number, tokens, streams, stop))
        try:
            yield streams
        finally:
            stop.set()


async def _client(
    url: str, key: str, number: int, tokens: int, streams: Streams, stop: asyncio.Event
) -> None:
    headers = {"authorization": f"Bearer {key}", "x-session-id": f"client-{number}"}
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": PROMPTS[number % len(PROMPTS)]}],
        "stream": True,
        "max_tokens": tokens,
        "ignore_eos": True,
        "cache_prompt": False,
    }
    limits = httpx.Limits(max_keepalive_connections=1, max_connections=1)
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=120.0, limits=limits, trust_env=False
    ) as client:
        while not stop.is_set():
            streams.open += 1
            try:
                outcome = await _stream(client, number, body, streams)
            finally:
                streams.open -= 1
                streams.reading.pop(number, None)
            streams.outcomes[outcome] += 1
            streams.finished[number] += 1


async def _stream(
    client: httpx.AsyncClient, number: int, body: dict[str, Any], streams: Streams
) -> str:
    """One stream to its end, with the SDK's retries before its beginning."""
    for attempt in range(RETRIES + 1):
        asked_at = time.monotonic()
        try:
            async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
                if answer.status_code == 200:
                    worker = answer.headers.get("x-specroute-worker", "")
                    streams.workers[worker] += 1
                    streams.begun.append((asked_at, time.monotonic(), worker))
                    streams.reading[number] = (worker, 0)
                    return await _read(answer, number, body["max_tokens"], streams)
                text = (await answer.aread()).decode(errors="replace")
                streams.reasons.append(f"{answer.status_code}: {text[:200]}")
        except _BEFORE_AN_ANSWER as error:
            streams.reasons.append(f"{type(error).__name__}: {error}")
        if attempt < RETRIES:
            streams.retried += 1
            await asyncio.sleep(PAUSE_S * 2**attempt)
    return "refused"


async def _read(answer: httpx.Response, number: int, tokens: int, streams: Streams) -> str:
    done, failure, generated = False, "", None
    worker, events = streams.reading[number]
    try:
        async for line in answer.aiter_lines():
            events += bool(line)
            streams.reading[number] = (worker, events)
            if line == "data: [DONE]":
                done = True
            elif line.startswith("data: {"):
                event = orjson.loads(line[6:])
                if "error" in event:
                    failure = str(event["error"].get("code"))
                generated = event.get("timings", {}).get("predicted_n", generated)
    except httpx.HTTPError as error:
        streams.reasons.append(f"in the stream: {type(error).__name__}: {error}")
        return "cut"
    if failure:
        streams.reasons.append(f"error event: {failure}")
        return "failed"
    if done and generated == tokens:
        streams.tokens += tokens
        return "whole"
    streams.reasons.append(f"done {done}, {generated} of {tokens} tokens")
    return "cut"
