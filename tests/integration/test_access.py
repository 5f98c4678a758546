"""Keys, limits, Host, content type and CORS of a whole gateway; and what must never be written."""

from __future__ import annotations

import asyncio

import pytest

from router.access import KeyEntry, hash_key
from router.access.key_store import RedisKeys
from router.access.keys import read_keys, write_keys
from router.in_redis import connect
from tests.support.gateway import ADMIN, ANSWER, DONE, SECRET, gateway, stream_answer, worker_at
from tests.support.raw_server import raw_server
from tests.support.simulated import simulated_fleet
from tests.support.waiting import until
from workers.keys import worker_api_key
from workers.scripted import Script

pytestmark = pytest.mark.slow

KEY = "sk-specroute-of-alice"
ALICE = KeyEntry("alice", hash_key(KEY))
BEARER = {"authorization": f"Bearer {KEY}"}
PAGE = "https://app.example"


def _fleet(**changes):
    script = Script(api_key=worker_api_key(SECRET, "plain"), tokens=3, **changes)
    return simulated_fleet({"plain": script})


async def _allows(gate, headers) -> bool:
    return (await gate.client.get("/v1/models", headers=headers)).status_code == 200


async def _becomes(gate, headers, wanted: bool) -> None:
    async with asyncio.timeout(30.0):
        while await _allows(gate, headers) is not wanted:  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.05)


async def test_keys_made_and_revoked_meanwhile_count_at_once(tmp_path):
    file = tmp_path / "keys.json"
    async with _fleet() as (_, records), gateway(*records, state_dir=tmp_path) as gate:
        assert await _allows(gate, {})
        write_keys(file, [ALICE, KeyEntry("limited", hash_key("l"), requests_per_minute=1.0)])
        await _becomes(gate, {}, False)
        assert await _allows(gate, BEARER)
        assert (await gate.chat(headers={"x-api-key": "l"})).status_code == 200
        assert (await gate.chat(headers={"x-api-key": "l"})).status_code == 429
        write_keys(file, [e for e in read_keys(file) if e.label != "alice"])
        await _becomes(gate, BEARER, False)


async def test_keys_in_redis_are_every_gateways(redis_url):
    store = RedisKeys(connect(redis_url), SECRET)
    await store.add(ALICE)
    async with (
        _fleet() as (_, records),
        gateway(*records, redis_url=redis_url) as one,
        gateway(*records, redis_url=redis_url) as two,
    ):
        for gate in (one, two):
            await _becomes(gate, {}, False)
            assert await _allows(gate, BEARER)
        await store.remove("alice")
        await store.add(KeyEntry("bob", hash_key("b")))
        for gate in (one, two):
            await _becomes(gate, BEARER, False)
    await store.aclose()


async def test_a_limit_holds_over_two_gateways(redis_url):
    entry = KeyEntry("k", hash_key("k"), requests_per_minute=12.0)
    headers = {"x-api-key": "k"}
    codes = []
    async with _fleet() as (_, records):
        settings = {"redis_url": redis_url, "keys": (entry,)}
        async with gateway(*records, **settings) as one, gateway(*records, **settings) as two:
            await until(lambda: all(_shares(gate)[0].reachable for gate in (one, two)))
            await asyncio.sleep(2.5)  # a newcomer's share comes with the next settling
            for _ in range(15):
                codes += [(await gate.chat(headers=headers)).status_code for gate in (one, two)]
    assert 8 <= codes.count(200) <= 16  # twelve, and what flowed in meanwhile
    assert set(codes) == {200, 429}


def _shares(gate):
    runs = [getattr(run, "__self__", None) for run in gate.app.parts.background]
    return [one for one in runs if type(one).__name__ == "Shares"]


async def test_a_public_gateway_whose_last_key_was_revoked_serves_nobody(tmp_path):
    file = tmp_path / "keys.json"
    write_keys(file, [ALICE])
    async with (
        _fleet() as (_, records),
        gateway(*records, state_dir=tmp_path, host="192.0.2.1") as gate,
    ):
        await _becomes(gate, BEARER, True)
        write_keys(file, [])
        await _becomes(gate, BEARER, False)
        assert not await _allows(gate, {})
        assert (await gate.client.get("/health")).status_code == 200


async def test_once_there_are_keys_everything_but_health_needs_one():
    async with _fleet() as (_, records), gateway(*records, keys=(ALICE,)) as gate:
        posts = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/route", "/tokenize")
        for path in posts:
            assert (await gate.client.post(path, json={})).status_code == 401
        for path in ("/v1/models", "/metrics", "/ops/summary", "/ops/workers"):
            assert (await gate.client.get(path)).status_code == 401
        assert (await gate.client.get("/metrics", headers=BEARER)).status_code == 200
        assert (await gate.client.get("/ops/summary", headers=BEARER)).status_code == 403
        for path in ("/health", "/ready"):
            assert (await gate.client.get(path)).status_code == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/route", "/tokenize", "/v1/embeddings"])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
async def test_a_page_cannot_post_without_a_preflight(path, kind):
    headers = {} if kind is None else {"content-type": kind}
    async with _fleet() as (_, records), gateway(*records) as gate:
        answer = await gate.client.post(path, content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("path", ["/v1/models", "/metrics"])
async def test_a_foreign_host_name_is_refused_while_the_gateway_is_open(path):
    async with _fleet() as (_, records), gateway(*records, allowed_hosts=("box.lan",)) as gate:
        evil = await gate.client.get(path, headers={"host": "evil.example"})
        good = await gate.client.get(path, headers={"host": "box.lan:80"})
    assert (evil.status_code, evil.json()["error"]["code"]) == (403, "host_not_allowed")
    assert good.status_code == 200


_PREFLIGHT = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-specroute-class",
}


async def test_pages_are_answered_where_the_config_lets_them():
    async with _fleet() as (_, records), gateway(*records, cors_origins=(PAGE,)) as gate:
        path = "/v1/chat/completions"
        asked = await gate.client.options(path, headers=_PREFLIGHT)
        answer = await gate.chat(headers={"origin": PAGE}, stream=True)
        foreign = await gate.client.options(path, headers={**_PREFLIGHT, "origin": "https://x.y"})
    assert asked.headers["access-control-allow-origin"] == PAGE
    assert "x-specroute-class" in asked.headers["access-control-allow-headers"]
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "x-specroute-worker" in answer.headers["access-control-expose-headers"]
    assert answer.content.endswith(b"data: [DONE]\n\n")
    assert "access-control-allow-origin" not in foreign.headers


async def test_no_page_is_answered_unless_the_config_says_so():
    async with _fleet() as (_, records), gateway(*records) as gate:
        asked = await gate.client.options("/v1/chat/completions", headers=_PREFLIGHT)
        answer = await gate.chat(headers={"origin": PAGE})
    for one in (asked, answer):
        assert not [name for name in one.headers if name.startswith("access-control")]
    assert asked.status_code == 405


async def test_nothing_of_the_clients_headers_reaches_the_worker():
    seen = []

    async def script(peer):
        seen.append(await peer.request())
        await stream_answer(peer, *ANSWER, DONE)

    headers = {**BEARER, "cookie": "c=1", "x-secret": "s", "x-forwarded-for": "1.2.3.4"}
    async with (
        raw_server(script) as server,
        gateway(worker_at(server.url), keys=(ALICE,)) as gate,
    ):
        await gate.chat(headers=headers)
    own = {b"host", b"content-type", b"content-length", b"authorization"}
    assert set(seen[0].headers) <= own
    assert KEY.encode() not in seen[0].head


async def test_keys_and_prompts_are_never_written(tmp_path, capsys):
    prompt = "the-prompt-nobody-may-read"
    headers = {**BEARER, "x-session-id": "s1"}
    async with (
        _fleet() as (_, records),
        gateway(*records, keys=(ALICE,), state_dir=tmp_path) as gate,
    ):
        assert (await gate.chat(prompt, headers=headers)).status_code == 200
        await gate.chat(prompt, headers={"x-api-key": "wrong-key-of-mallory"})
        await gate.client.post("/route", json={"messages": 3}, headers=headers)
        await gate.client.get(f"/v1/models/{prompt}", headers=headers)
        await until(lambda: len(gate.outcomes) >= 2)
        shown = (await gate.client.get("/metrics", headers=headers)).text
        for path in ("/ops/summary", "/ops/workers", "/ops/classes"):
            shown += (await gate.client.get(path, headers=ADMIN)).text
    captured = capsys.readouterr()
    shown += captured.out + captured.err + repr(gate.outcomes)
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    for secret in (KEY, "wrong-key-of-mallory", prompt, SECRET, ADMIN["authorization"][7:]):
        assert secret not in shown
        assert secret.encode() not in written
