"""CPU of the upstream transports: per 1,000 requests and per 100,000 streamed chunks.

    python tests/perf/bench_upstream.py [--rounds 3] [--json]

The worker is a bare asyncio protocol in another process, so only the client's own CPU is counted.
Rounds are interleaved; the figure is the median. aiohttp is compared too where it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import uvloop

from router.upstream import UpstreamRequest, build_upstream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from multiprocessing.connection import Connection

EVENT = (
    b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" word"}}],'
    b'"created":1795979908,"id":"chatcmpl-txzUyP0dUxC8jQkyFFcw4QDElSoZnCp1",'
    b'"model":"tiny","system_fingerprint":"b0","object":"chat.completion.chunk"}\n\n'
)
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nX-Accel-Buffering: no\r\n"
    b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Keep-Alive: timeout=5, max=100\r\n\r\n"
)
PLAIN = (
    b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: application/json; charset=utf-8\r\n"
    b"Content-Length: 640\r\nKeep-Alive: timeout=5, max=100\r\n\r\n" + b"x" * 640
)
HEADERS = ((b"content-type", b"application/json"), (b"authorization", b"Bearer key"))
STREAMS, CHUNKS, GAP = 64, 150, 0.01  # 6,400 chunks a second, each a read of its own


class Stub(asyncio.Protocol):
    """Answers /stream with a paced stream, anything else with a fixed body."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.missing = 0

    def data_received(self, data: bytes) -> None:
        if self.missing <= 0:
            head, _, body = data.partition(b"\r\n\r\n")
            lowered = head.lower()
            at = lowered.index(b"content-length:") + 15
            self.missing = int(lowered[at:].split(b"\r", 1)[0]) - len(body)
            self.stream = head.startswith(b"POST /stream")
        else:
            self.missing -= len(data)
        if self.missing > 0:
            return
        if self.stream:
            self.transport.write(STREAM_HEAD)
            self.tick(CHUNKS)
        else:
            self.transport.write(PLAIN)

    def tick(self, left: int) -> None:
        if left == 0:
            self.transport.write(b"0\r\n\r\n")
            self.transport.close()
            return
        self.transport.write(CHUNK)
        asyncio.get_running_loop().call_later(GAP, self.tick, left - 1)


def serve(pipe: Connection) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(main())


async def through_seam(name: str, url: str, work: Callable[[Any], Awaitable[None]]) -> None:
    upstream = build_upstream(name)

    async def fetch(body: bytes, path: str = "/plain") -> tuple[int, int]:
        request = UpstreamRequest(url, "POST", path, body, HEADERS)
        response = await upstream.open(request)
        size = count = 0
        try:
            async for chunk in response.chunks():
                size += len(chunk)
                count += 1
        finally:
            await response.aclose()
        return size, count

    await work(fetch)
    await upstream.aclose()


async def through_aiohttp(_: str, url: str, work: Callable[[Any], Awaitable[None]]) -> None:
    import aiohttp

    headers = {name.decode(): value.decode() for name, value in HEADERS}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

        async def fetch(body: bytes, path: str = "/plain") -> tuple[int, int]:
            size = count = 0
            async with session.post(url + path, data=body, headers=headers) as response:
                async for chunk in response.content.iter_any():
                    size += len(chunk)
                    count += 1
            return size, count

        await work(fetch)


def requests_work(parallel: int, total: int, body: bytes) -> Callable[[Any], Awaitable[None]]:
    async def work(fetch: Any) -> None:
        async def worker(count: int) -> None:
            for _ in range(count):
                size, _ = await fetch(body)
                assert size == 640

        async with asyncio.TaskGroup() as group:
            for _ in range(parallel):
                group.create_task(worker(total // parallel))

    return work


async def streams_work(fetch: Any) -> None:
    async def one() -> None:
        size, _ = await fetch(b"{}", "/stream")
        assert size == len(EVENT) * CHUNKS

    async with asyncio.TaskGroup() as group:
        for _ in range(STREAMS):
            group.create_task(one())


def cpu_of(target: str, url: str, work: Callable[[Any], Awaitable[None]]) -> float:
    """CPU seconds of this process for `work` through `target`."""
    through = through_aiohttp if target == "aiohttp" else through_seam

    async def timed() -> float:
        used = 0.0

        async def measured(fetch: Any) -> None:
            nonlocal used
            await fetch(b"{}")
            begin = time.process_time()
            await work(fetch)
            used = time.process_time() - begin

        await through(target, url, measured)
        return used

    return uvloop.run(timed())


def measure(url: str, rounds: int) -> dict[str, dict[str, float]]:
    targets = ["http11", "httpx"] + (["aiohttp"] if find_spec("aiohttp") else [])
    small, large = b'{"messages":[{"role":"user","content":"hi"}]}', b"x" * 100_000
    cases = {
        "ms CPU per request, 1 connection": (requests_work(1, 1000, small), 1.0),
        "ms CPU per request, 32 connections": (requests_work(32, 1600, small), 1.6),
        "ms CPU per request, 100 KB prompt": (requests_work(1, 400, large), 0.4),
        "s CPU per 100,000 chunks": (streams_work, STREAMS * CHUNKS / 100_000),
    }
    rows: dict[str, dict[str, list[float]]] = {case: {} for case in cases}
    for _ in range(rounds):
        for case, (work, scale) in cases.items():
            for target in targets:
                rows[case].setdefault(target, []).append(cpu_of(target, url, work) / scale)
    return {
        case: {target: statistics.median(values) for target, values in row.items()}
        for case, row in rows.items()
    }


def table(rows: dict[str, dict[str, float]]) -> str:
    targets = list(next(iter(rows.values())))
    lines = ["| CPU | " + " | ".join(targets) + " |", "|---" * (len(targets) + 1) + "|"]
    for case, row in rows.items():
        cells = [f"{row[t]:.3f} (x{row[t] / row['http11']:.1f})" for t in targets]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    stub = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    stub.start()
    try:
        rows = measure(f"http://127.0.0.1:{ours.recv()}", options.rounds)
    finally:
        stub.terminate()
        stub.join()
    print(json.dumps(rows) if options.json else table(rows))  # noqa: T201 - its purpose


if __name__ == "__main__":
    main()
