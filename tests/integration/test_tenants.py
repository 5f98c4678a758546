"""Nobody is served from another tenant's cache, as a real server's own `cache_n` tells."""

from __future__ import annotations

import pytest

from router.access import KeyEntry, hash_key
from tests.support.engines import real_workers
from tests.support.gateway import gateway
from workers.engines.llama_cpp import TENANT_SAFE

pytestmark = [pytest.mark.engine, pytest.mark.slow]

RULES = " ".join(f"Rule {n}: be exact about number {n * 7 % 13}." for n in range(40))
KEYS = tuple(KeyEntry(name, hash_key(f"key-{name}")) for name in ("ann", "ben", "cay"))


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """One server with two slots, started as tenant-safe configurations start theirs."""
    with real_workers(tmp_path_factory.mktemp("tenants"), "ar", extra=TENANT_SAFE) as started:
        yield started[0]


async def cached(gate, who: str, path: str = "/v1/chat/completions", **fields) -> int:
    """How many tokens of the shared prompt the worker found in a cache."""
    body = {"model": "tiny", "max_tokens": 4, "temperature": 0} | fields
    messages = [{"role": "user", "content": f"{RULES} Say one."}]
    body |= {"input": messages} if path.endswith("responses") else {"messages": messages}
    headers = {"authorization": f"Bearer key-{who}"}
    answer = await gate.client.post(path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    usage = answer.json()["usage"]
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    return int(details.get("cached_tokens", usage.get("cache_read_input_tokens", 0)))


async def test_a_tenant_finds_its_own_words_and_never_anothers(worker):
    async with gateway(worker.record(), tenant_safe=True, keys=KEYS) as gate:
        assert await cached(gate, "ann") == 0
        assert await cached(gate, "ann") > 300
        assert await cached(gate, "ben") == 0
        assert await cached(gate, "ben", id_slot=0) > 300  # its own slot, whatever it names
        assert await cached(gate, "cay", id_slot=1, cache_prompt=True) == 0  # takes ann's slot
        assert await cached(gate, "ann") == 0
        assert await cached(gate, "ann", "/v1/responses") > 300
        assert await cached(gate, "ben", "/v1/messages") == 0
        assert await cached(gate, "ben", "/v1/messages") == 0
        assert await cached(gate, "ann") == 0  # nobody knows which slot that was
        assert await cached(gate, "ann", cache_prompt=False) == 0
        assert await cached(gate, "ann") > 300


async def test_without_it_the_server_shares_what_it_has(worker):
    """The control: the same server, asked to cache, does serve one from another's words."""
    async with gateway(worker.record(), keys=KEYS) as gate:
        await cached(gate, "ann", cache_prompt=True)
        assert await cached(gate, "ben", cache_prompt=True) > 300
