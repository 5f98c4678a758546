"""Who gets in, under which name, and who may operate."""

from __future__ import annotations

import pytest

from router.access import Authenticator, KeyEntry, KeyRing, hash_key
from router.core import Forbidden, Unauthorized

ALICE = KeyEntry("alice", hash_key("key-a"), models=frozenset({"tiny"}), priority=3)
ROOT = KeyEntry("root", hash_key("key-r"), admin=True)
LOCAL = {b"host": b"127.0.0.1:8080"}


def _closed() -> Authenticator:
    return Authenticator(KeyRing([ALICE, ROOT]), admin_token="token")  # noqa: S106


def _open(**more) -> Authenticator:
    return Authenticator(KeyRing(), admin_token="token", **more)  # noqa: S106


@pytest.mark.parametrize(
    "headers",
    [
        {b"authorization": b"Bearer key-a"},
        {b"authorization": b"bearer  key-a"},
        {b"x-api-key": b"key-a"},
        {b"authorization": b"Basic abc", b"x-api-key": b"key-a"},
    ],
)
def test_a_known_key_gets_in_under_its_label(headers):
    principal = _closed().authenticate(headers)
    assert principal.key_id == "alice"
    assert principal.models == {"tiny"}
    assert principal.priority == 3
    assert not principal.admin


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {b"authorization": b"Bearer "},
        {b"authorization": b"Bearer key-b"},
        {b"authorization": b"key-a"},
        {b"x-api-key": b"\xff\xfe"},
    ],
)
def test_no_or_a_wrong_key_does_not(headers):
    with pytest.raises(Unauthorized) as refused:
        _closed().authenticate(headers)
    assert refused.value.code == "invalid_api_key"
    assert "key-b" not in refused.value.message


@pytest.mark.parametrize("beside", [b"Basic abc", b"Bearer ", b""])
def test_what_came_beside_a_key_is_none_itself(beside):
    gate = _closed()
    gate.authenticate({b"authorization": beside, b"x-api-key": b"key-a"})
    with pytest.raises(Unauthorized):
        gate.authenticate({b"authorization": beside})


def test_the_admin_token_is_a_key_too():
    assert _closed().authenticate({b"x-api-key": b"token"}).admin


@pytest.mark.parametrize("host", [b"localhost", b"LOCALHOST:8080", b"127.0.0.1:1", b"[::1]:8080"])
def test_without_keys_this_machine_gets_in(host):
    assert _open().authenticate({b"host": host}).key_id == "anonymous"


@pytest.mark.parametrize("host", [b"evil.example", b"127.0.0.1.evil.example:8080", b"", b"[::2]"])
def test_without_keys_a_foreign_host_name_does_not(host):
    with pytest.raises(Forbidden):
        _open().authenticate({b"host": host})


def test_a_host_can_be_allowed():
    gate = _open(allowed_hosts=["box.lan"])
    assert gate.authenticate({b"host": b"Box.LAN:8080"}).key_id == "anonymous"


def test_an_open_gateway_still_knows_its_operator():
    assert _open().authenticate(LOCAL | {b"authorization": b"Bearer token"}).admin
    assert not _open().authenticate(LOCAL | {b"authorization": b"Bearer whatever"}).admin


def test_operators_need_the_token_or_an_admin_key():
    gate = _closed()
    assert gate.authorize_admin({b"authorization": b"Bearer token"}).key_id == "admin"
    assert gate.authorize_admin({b"authorization": b"Bearer key-r"}).key_id == "root"
    with pytest.raises(Forbidden):
        gate.authorize_admin({b"authorization": b"Bearer key-a"})
    for headers in ({}, {b"authorization": b"Bearer nobody"}):
        with pytest.raises(Unauthorized):
            gate.authorize_admin(headers)


def test_without_a_token_nobody_operates():
    gate = Authenticator(KeyRing(), admin_token=None)
    with pytest.raises(Unauthorized):
        gate.authorize_admin({b"authorization": b"Bearer "})
    with pytest.raises(Unauthorized):
        gate.authorize_admin({b"authorization": b"Bearer x"})


def test_a_key_that_was_seen_is_forgotten_when_it_is_revoked():
    entry = KeyEntry("app", hash_key("sk-app"))
    ring = KeyRing([entry, KeyEntry("other", hash_key("sk-other"))])
    authenticator = Authenticator(ring, admin_token=None)
    headers = {b"authorization": b"Bearer sk-app"}
    assert [authenticator.authenticate(headers).key_id for _ in range(2)] == ["app", "app"]
    ring.replace([KeyEntry("other", hash_key("sk-other"))])
    for _ in range(2):
        with pytest.raises(Unauthorized):
            authenticator.authenticate(headers)
    assert authenticator.authenticate({b"authorization": b"Bearer sk-other"}).key_id == "other"
    ring.replace([])
    with pytest.raises(Unauthorized):
        Authenticator(ring, admin_token=None, may_be_open=False).authenticate(headers)
