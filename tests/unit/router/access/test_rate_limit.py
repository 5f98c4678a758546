"""Buckets that fill evenly, and what a key is told when its own is empty."""

from __future__ import annotations

import pytest

from router.access import KeyEntry, RateLimiter
from router.core import RateLimited
from tests.fakes.gateway import HandClock


def _limiter(**limits) -> tuple[RateLimiter, HandClock]:
    clock = HandClock()
    return RateLimiter(clock, [KeyEntry("a", "digest", **limits)]), clock


def test_keys_without_limits_are_never_refused():
    limiter, _ = _limiter()
    for _ in range(1000):
        limiter.acquire("a")
        limiter.acquire("unknown")


def test_a_minute_worth_at_once_and_then_one_at_a_time():
    limiter, clock = _limiter(requests_per_minute=6)
    for _ in range(6):
        limiter.acquire("a")
    with pytest.raises(RateLimited) as refused:
        limiter.acquire("a")
    assert refused.value.retry_after == pytest.approx(10.0)
    assert refused.value.code == "rate_limit_exceeded"
    clock.advance(10.0)
    limiter.acquire("a")
    with pytest.raises(RateLimited):
        limiter.acquire("a")


def test_a_long_rest_saves_no_more_than_a_minute():
    limiter, clock = _limiter(requests_per_minute=2)
    clock.advance(3600.0)
    limiter.acquire("a")
    limiter.acquire("a")
    with pytest.raises(RateLimited):
        limiter.acquire("a")


def test_spent_tokens_must_flow_back_first():
    limiter, clock = _limiter(tokens_per_minute=600)
    limiter.acquire("a")
    limiter.spend("a", 1000)
    with pytest.raises(RateLimited) as refused:
        limiter.acquire("a")
    assert refused.value.retry_after == pytest.approx(40.1)
    clock.advance(41.0)
    limiter.acquire("a")


def test_others_pay_nothing_for_it():
    limiter, _ = _limiter(tokens_per_minute=1)
    limiter.spend("b", 1e9)
    limiter.spend("a", 100)
    limiter.acquire("b")
