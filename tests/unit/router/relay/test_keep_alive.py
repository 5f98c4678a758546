"""Comments for a stream that waits; nothing for anybody else."""

from __future__ import annotations

import asyncio

import pytest

from router.relay.keep_alive import COMMENT, KeepAlive
from tests.fakes.gateway import request
from tests.support.waiting import until


class _Client:
    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.started = False

    async def start(self, status, headers) -> None:
        self.started = True

    async def write(self, chunk: bytes) -> None:
        self.sent.append(chunk)


class _Flight:
    def __init__(self, *, stream: bool) -> None:
        self.request = request(stream=stream)

    def headers(self) -> list:
        return []


@pytest.mark.interpreted
async def test_it_opens_the_stream_and_goes_on_until_stopped():
    client = _Client()
    async with asyncio.TaskGroup() as group:
        keep = KeepAlive(group, client, _Flight(stream=True), 0.01)
        keep.arm()
        await until(lambda: len(client.sent) >= 3)
        keep.stop()
    assert client.started
    assert set(client.sent) == {COMMENT}
    assert COMMENT.startswith(b":")


@pytest.mark.interpreted
async def test_an_answer_in_time_leaves_the_stream_unopened():
    client = _Client()
    async with asyncio.TaskGroup() as group:
        keep = KeepAlive(group, client, _Flight(stream=True), 0.05)
        keep.arm()
        keep.stop()
        keep.stop()
        await asyncio.sleep(0.1)
    assert not client.started


@pytest.mark.interpreted
async def test_a_plain_request_is_never_opened_early():
    client = _Client()
    async with asyncio.TaskGroup() as group:
        keep = KeepAlive(group, client, _Flight(stream=False), 0.01)
        keep.arm()
        await asyncio.sleep(0.05)
        keep.stop()
    assert not client.started
