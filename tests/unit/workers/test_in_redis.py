from __future__ import annotations

import pytest

from workers.in_redis import connect, key


def test_keys_are_under_our_prefix():
    assert key("worker", "code") == "specroute:worker:code"


async def test_a_unix_socket_url_reaches_a_real_server(redis_url):
    client = connect(redis_url)
    assert await client.ping() is True
    await client.aclose()


async def test_a_sentinel_url_names_hosts_master_and_database():
    client = connect("redis+sentinel://s1:26380,s2/mymaster?db=3&password=pw")
    pool = client.connection_pool
    hosts = [s.connection_pool.connection_kwargs["host"] for s in pool.sentinel_manager.sentinels]
    assert (pool.service_name, hosts) == ("mymaster", ["s1", "s2"])
    assert pool.connection_kwargs["db"] == 3
    await client.aclose()


@pytest.mark.parametrize(
    ("url", "problem"), [("redis+sentinel://s1:26380", "MASTER"), ("http://x", "scheme")]
)
def test_other_urls_are_refused(url, problem):
    with pytest.raises(ValueError, match=problem):
        connect(url)
