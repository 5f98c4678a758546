"""Who gets in, as what, and for how long."""

from __future__ import annotations

import base64

import pytest

from router.access import KeyEntry, hash_key
from router.dashboard.access import FAILURES, SESSION_S, Doorkeeper, Role, TooManyTries
from tests.fakes.gateway import HandClock

KEYS = (
    KeyEntry("app", hash_key("sk-app")),
    KeyEntry("boss", hash_key("sk-boss"), admin=True),
)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def door(clock: HandClock) -> Doorkeeper:
    return Doorkeeper("the-token", "the-secret", clock, KEYS)


@pytest.mark.parametrize(
    ("token", "view_only", "role"),
    [
        ("the-token", False, Role.OPERATOR),
        ("the-token", True, Role.VIEWER),
        ("sk-boss", False, Role.OPERATOR),
        ("sk-app", False, Role.VIEWER),
        ("wrong", False, None),
        ("", False, None),
        ("пароль", False, None),
    ],
)
def test_roles(door: Doorkeeper, token: str, view_only: bool, role: Role | None) -> None:
    assert door.role(door.sign_in(token, view_only=view_only)) is role


def test_a_session_ends(door: Doorkeeper, clock: HandClock) -> None:
    cookie = door.sign_in("the-token", view_only=False)
    clock.advance(SESSION_S + 1)
    assert door.role(cookie) is None


def test_forged_cookies(door: Doorkeeper) -> None:
    cookie = door.sign_in("the-token", view_only=True)
    assert cookie is not None
    raised = base64.urlsafe_b64decode(cookie).replace(b"viewer", b"operator")
    forged = base64.urlsafe_b64encode(raised).decode()
    for bad in (forged, "", "garbage", "é", cookie[:-4]):
        assert door.role(bad) is None


def test_a_new_admin_token_ends_old_sessions(door: Doorkeeper, clock: HandClock) -> None:
    cookie = door.sign_in("the-token", view_only=False)
    assert Doorkeeper("another", "the-secret", clock).role(cookie) is None


def test_too_many_tries_close_the_door_for_a_minute(door: Doorkeeper, clock: HandClock) -> None:
    for _ in range(FAILURES):
        assert door.sign_in("wrong", view_only=False) is None
    with pytest.raises(TooManyTries):
        door.sign_in("the-token", view_only=False)
    clock.advance(61)
    assert door.sign_in("the-token", view_only=False)
