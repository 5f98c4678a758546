"""How long to wait after a crash, and when to stop trying; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds double from `first` to `cap`; `limit` crashes within `window` are a loop.

    The first delay is short, since a single crash under load should cost as little as possible. The
    caller forgets earlier crashes once a worker has served for `stable` seconds: what dies after
    that has been killed, and is not in a loop.
    """

    first: float = 0.2
    factor: float = 2.0
    cap: float = 30.0
    limit: int = 5
    window: float = 120.0
    stable: float = 10.0
    jitter: float = 0.2  # share of the delay, so that workers of one cause do not return in step

    def after(
        self, crashes: tuple[float, ...], now: float, rng: random.Random
    ) -> tuple[tuple[float, ...], float | None]:
        """The crashes that still count, this one included, and the delay; None is a crash loop.

        Args:
            crashes: times of earlier crashes in monotonic seconds.
            now: the time of this one.
            rng: where the jitter comes from.
        """
        recent = (*(at for at in crashes if now - at < self.window), now)
        if len(recent) >= self.limit:
            return recent, None
        delay = min(self.cap, self.first * self.factor ** (len(recent) - 1))
        return recent, delay * (1.0 + self.jitter * rng.random())
