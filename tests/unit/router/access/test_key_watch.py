"""Keys that come and go while the gateway runs."""

from __future__ import annotations

import pytest

from router.access import KeyEntry, hash_key
from router.access.key_store import RedisKeys
from router.access.key_watch import KeyWatch, Made
from router.access.keys import write_keys
from router.in_redis import connect

FIXED = KeyEntry("fixed", hash_key("f"), priority=1)
ONE = KeyEntry("one", hash_key("1"))
TWO = KeyEntry("two", hash_key("2"))


@pytest.fixture
def told():
    return []


async def test_only_changes_are_told(tmp_path, told):
    file = tmp_path / "keys.json"
    watch = KeyWatch([FIXED], told.append, file=file)
    await watch.look()
    assert told == []
    write_keys(file, [TWO, ONE])
    await watch.look()
    await watch.look()
    write_keys(file, [TWO])
    await watch.look()
    assert told == [(FIXED, ONE, TWO), (FIXED, TWO)]


async def test_a_label_of_the_config_is_nobody_elses(tmp_path, told):
    file = tmp_path / "keys.json"
    write_keys(file, [KeyEntry("fixed", hash_key("usurper"), admin=True)])
    watch = KeyWatch([FIXED], told.append, file=file)
    await watch.look()
    assert told == []


async def test_what_cannot_be_read_changes_nothing(tmp_path, told):
    file = tmp_path / "keys.json"
    write_keys(file, [ONE])
    away = RedisKeys(connect("redis://127.0.0.1:1"), "secret")
    watch = KeyWatch([], told.append, file=file, store=away, known=Made(store=(TWO,)))
    await watch.look()
    assert told == [(ONE, TWO)]
    file.write_text("{damaged")
    await watch.look()
    assert told == [(ONE, TWO)]
    file.unlink()
    await watch.look()
    assert told[1:] == [(TWO,)]
    await watch.aclose()


async def test_the_store_is_read_too(redis_url, told):
    store = RedisKeys(connect(redis_url), "secret")
    watch = KeyWatch([], told.append, store=store, known=Made(store=(ONE,)))
    await store.add(ONE)
    await watch.look()
    assert told == []
    await store.add(TWO)
    await watch.look()
    await store.remove("one")
    await watch.look()
    assert told == [(ONE, TWO), (TWO,)]
    await watch.aclose()
