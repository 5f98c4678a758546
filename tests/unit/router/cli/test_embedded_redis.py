"""The embedded Redis listens on a private socket only and keeps its data."""

from __future__ import annotations

import stat
import subprocess
import time

import redis

from router.cli.embedded_redis import find_binary, redis_argv, socket_path


def start(folder) -> tuple[subprocess.Popen, redis.Redis]:
    socket = socket_path(folder)
    process = subprocess.Popen(redis_argv(find_binary(), folder, socket), stdout=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=str(socket))
    for _ in range(200):
        try:
            client.ping()
        except redis.ConnectionError:
            time.sleep(0.05)
        else:
            return process, client
    raise AssertionError("redis-server did not come up")


def test_no_tcp_private_folder_and_data_that_stays(tmp_path):
    process, client = start(tmp_path)
    assert client.config_get("port")["port"] == "0"
    assert stat.S_IMODE((tmp_path / "redis").stat().st_mode) == 0o700
    client.set("kept", "yes")
    client.close()
    process.terminate()
    process.wait(10)
    process, client = start(tmp_path)
    try:
        assert client.get("kept") == b"yes"
    finally:
        client.close()
        process.terminate()
        process.wait(10)


def test_a_deep_state_folder_gets_a_short_private_socket(tmp_path):
    deep = tmp_path / ("d" * 90)
    path = socket_path(deep)
    assert len(str(path)) <= 100
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.parent.rmdir()
