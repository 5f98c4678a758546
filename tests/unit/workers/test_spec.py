from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from workers.spec import GPUSettings, WorkerSpec

SPEC = WorkerSpec("w", "m", "mtp-n3", target=Path("t.gguf"))


def test_the_digest_follows_what_changes_speed_or_output():
    digests = {
        SPEC.digest(),
        replace(SPEC, mode="ar").digest(),
        replace(SPEC, n_max=5).digest(),
        replace(SPEC, context=8192).digest(),
        replace(SPEC, gpu=GPUSettings(devices=(1,))).digest(),
        replace(SPEC, args=("-ctk", "q8_0")).digest(),
        replace(SPEC, target=Path("other.gguf")).digest(),
    }
    assert len(digests) == 7
    assert all(len(digest) == 16 for digest in digests)


def test_the_digest_ignores_names_addresses_and_secrets():
    other = replace(SPEC, name="v", port=1, aliases=("a",), priority=9, api_key="k")
    assert other.digest() == SPEC.digest()


def test_a_worker_with_a_url_is_not_ours_and_its_key_is_not_shown():
    attached = replace(SPEC, url="http://h:1", api_key="secret")
    assert not attached.managed
    assert SPEC.managed
    assert "secret" not in repr(attached)
