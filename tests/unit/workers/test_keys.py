from __future__ import annotations

import hashlib
import hmac

import pytest

from workers.keys import SealBroken, seal, unseal, worker_api_key


def test_a_worker_key_is_the_hmac_of_its_name():
    assert worker_api_key("s3", "code") == hmac.new(b"s3", b"code", hashlib.sha256).hexdigest()
    assert worker_api_key("s3", "code") != worker_api_key("s3", "prose")
    assert worker_api_key("s3", "code") != worker_api_key("s4", "code")


def test_what_is_sealed_comes_out_as_it_was():
    assert unseal("s", "record", seal("s", "record", b"a:b\x00")) == b"a:b\x00"


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b":",
        seal("s", "record", b"x")[:-1],
        seal("s", "command", b"x"),
        seal("other", "record", b"x"),
        seal("s", "record", b"x").replace(b":", b";"),
    ],
)
def test_a_broken_seal_is_refused(broken):
    with pytest.raises(SealBroken, match="record"):
        unseal("s", "record", broken)
