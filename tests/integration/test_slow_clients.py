"""Clients that read a kilobyte a second: the gateway holds little for each, others notice nothing.

The worker would send for ever; what stops it is the chain of full buffers back from the client.
"""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.gateway import ANSWER, DONE, STREAM_HEAD, delta, framed, gateway, worker_at
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.gateway import RunningGateway
    from workers.record import WorkerRecord

STREAMS = 64
PIECE = framed(delta("x" * 16_000))
PER_STREAM = 1_500_000  # bytes: high-water marks of both connections and their copies, with room


class _Endless:
    """Streams without end to whoever asks for it, and answers others at once."""

    def __init__(self) -> None:
        self.sent = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            writer.write(STREAM_HEAD)
            while b"for ever" in body:
                writer.write(PIECE)
                await writer.drain()
                self.sent += len(PIECE)
            for part in (*ANSWER, DONE):
                writer.write(framed(part))
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _slow_client(port: int, began: asyncio.Event) -> None:
    """Ask for an endless stream and read a kilobyte a second of it until cancelled."""
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        sock.setblocking(False)
        await loop.sock_connect(sock, ("127.0.0.1", port))
        body = b'{"model":"tiny","stream":true,"messages":[{"role":"user","content":"for ever"}]}'
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
        head += b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        await loop.sock_sendall(sock, head + body)
        while await loop.sock_recv(sock, 1024):
            began.set()
            await asyncio.sleep(1.0)


@pytest.mark.slow
async def test_slow_clients_cost_bounded_memory_and_others_nothing():
    worker = _Endless()
    server = await asyncio.start_server(worker, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    record = worker_at(url, slots=STREAMS + 2)
    async with server, gateway(record) as gate:
        assert (await gate.chat()).status_code == 200
        before = _resident()
        port = int(gate.url.rpartition(":")[2])
        began = [asyncio.Event() for _ in range(STREAMS)]
        async with asyncio.TaskGroup() as group:
            beats = group.create_task(_keep_alive(gate, record))
            clients = [group.create_task(_slow_client(port, one)) for one in began]
            for one in began:
                await one.wait()
            await _until_stuck(worker)
            assert gate.in_flight == STREAMS
            assert _resident() - before < STREAMS * PER_STREAM
            answer = await gate.chat()
            assert answer.status_code == 200, answer.text
            assert answer.json()["choices"][0]["message"]["content"] == "one two three"
            for task in (beats, *clients):
                task.cancel()
        await until(lambda: gate.in_flight == 0)


async def _keep_alive(gate: RunningGateway, record: WorkerRecord) -> None:
    while True:
        await gate.registry.publish(record)
        await asyncio.sleep(2.0)


async def _until_stuck(worker: _Endless) -> None:
    """Until the worker can hardly send: what the clients read is all that moves."""
    async with asyncio.timeout(120):
        while True:
            before = worker.sent
            await asyncio.sleep(1.0)
            if worker.sent - before < 20 * STREAMS * 1024:
                return
