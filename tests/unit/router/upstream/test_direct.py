from __future__ import annotations

from router.upstream import UpstreamRequest
from router.upstream.direct import DirectUpstream
from tests.support.raw_server import STREAM_HEAD, answer, chunk, raw_server


async def fetch(upstream, url: str, headers=()) -> tuple[list[bytes], tuple]:
    response = await upstream.open(UpstreamRequest(url, "POST", "/x", b"{}", headers))
    parts = [part async for part in response.chunks()]
    await response.aclose()
    return parts, response.headers


async def test_compressed_bodies_pass_as_they_are():
    body = b"\x1f\x8b not really gzip"

    async def script(peer) -> None:
        seen.append((await peer.request()).headers)
        await peer.send(answer(body, b"Content-Encoding: gzip"))

    seen: list[dict] = []
    upstream = DirectUpstream()
    async with raw_server(script) as server:
        parts, headers = await fetch(upstream, server.url)
        await upstream.aclose()
    assert b"".join(parts) == body
    assert (b"content-encoding", b"gzip") in headers
    assert sorted(seen[0]) == [b"content-length", b"host"]  # nothing of httpx's own


async def test_environment_proxies_are_ignored(monkeypatch):
    async def script(peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD + chunk(b"ab") + b"0\r\n\r\n")

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    upstream = DirectUpstream()
    async with raw_server(script) as server:
        assert (await fetch(upstream, server.url))[0] == [b"ab"]
        await upstream.aclose()
