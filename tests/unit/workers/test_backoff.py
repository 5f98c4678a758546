from __future__ import annotations

import random

from workers.backoff import Backoff

RNG = random.Random(1)
CALM = Backoff(first=1.0, factor=2.0, cap=5.0, limit=5, window=100.0, jitter=0.0)


def test_delays_double_up_to_the_cap_and_the_last_crash_is_a_loop():
    crashes, delays = (), []
    for now in range(5):
        crashes, delay = CALM.after(crashes, float(now), RNG)
        delays.append(delay)
    assert delays == [1.0, 2.0, 4.0, 5.0, None]
    assert crashes == (0.0, 1.0, 2.0, 3.0, 4.0)


def test_old_crashes_do_not_count():
    crashes, delay = CALM.after((0.0, 1.0, 2.0, 3.0), 102.5, RNG)
    assert crashes == (3.0, 102.5)
    assert delay == 2.0


def test_jitter_only_adds_and_only_its_share():
    shaky = Backoff(first=1.0, jitter=0.5)
    delays = {shaky.after((), 0.0, RNG)[1] for _ in range(50)}
    assert len(delays) > 40
    assert all(1.0 <= delay <= 1.5 for delay in delays)
