"""Keys in a real Redis: sealed, unique by label, and nobody else's."""

from __future__ import annotations

import pytest
import redis

from router.access.key_store import RedisKeys
from router.access.keys import KeyEntry, hash_key, new_key
from router.in_redis import connect


@pytest.fixture
async def store(redis_url):
    keys = RedisKeys(connect(redis_url), "secret")
    yield keys
    await keys.aclose()


async def test_what_is_added_is_listed_until_it_is_removed(store, redis_url):
    key = new_key()
    entry = KeyEntry("b", hash_key(key), models=frozenset({"x"}), tokens_per_minute=5.0)
    other = KeyEntry("a", hash_key("other"), admin=True)
    assert await store.add(entry)
    assert await store.add(other)
    assert not await store.add(KeyEntry("b", hash_key("usurper")))
    assert await store.list() == (other, entry)
    with redis.Redis.from_url(redis_url) as raw:
        assert key.encode() not in b"".join(raw.hvals("specroute:keys"))
    assert await store.remove("b")
    assert not await store.remove("b")
    assert await store.list() == (other,)


async def test_who_can_write_to_redis_cannot_let_themselves_in(store, redis_url):
    entry = KeyEntry("mine", hash_key("k"))
    await store.add(entry)
    foreign = RedisKeys(connect(redis_url), "another secret")
    await foreign.add(KeyEntry("theirs", hash_key("t"), admin=True))
    await foreign.aclose()
    with redis.Redis.from_url(redis_url) as raw:
        raw.hset("specroute:keys", "forged", b"x" * 90)
        raw.hset("specroute:keys", "renamed", raw.hget("specroute:keys", "mine"))
    assert await store.list() == (entry,)
