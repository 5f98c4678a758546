"""What `up` refuses before it starts anything."""

from __future__ import annotations

import pytest

from router.cli.stack import StackFailed, StackOptions, running_stack


async def test_a_redis_that_outlived_its_up_keeps_its_files(tmp_path, redis_url):
    (tmp_path / "redis-url").write_text(redis_url + "\n")
    options = StackOptions(tmp_path / "c.yaml", tmp_path, "127.0.0.1", 1, ())
    with pytest.raises(StackFailed, match=r"still runs in .* as pid \d+; end it or choose"):
        async with running_stack(options):
            pass
    assert not (tmp_path / "redis").exists()
