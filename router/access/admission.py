"""The queue in front of the workers: bounded, fair between keys, priorities first.

A waiter brings an `attempt`: choose and reserve in one tick, None when there is no room. When a
worker gains room the fairest waiters attempt in turn, so that a slot goes from one request to the
next without a moment in which a newcomer could take it. Counterpart: `router.fleet.live`.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from router.core import GatewayError, Saturated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from router.core import Principal, RoutingDecision
    from workers.clock import Clock
    from workers.record import WorkerRecord

T = TypeVar("T")

ATTEMPTS_PER_WAKE: Final = 16
"""How many waiters one freed slot may ask: a bound on the work of one tick."""
RATE_WINDOW_S: Final = 60.0
RATE_SAMPLES: Final = 64
UNKNOWN_RATE_WAIT_S: Final = 5.0  # Retry-After before anything was measured


class Waiter(Generic[T]):
    """One request in the queue. Order: priority, then fair tag, then arrival."""

    __slots__ = ("attempt", "decided", "future", "model", "order", "since", "worker")

    def __init__(
        self,
        attempt: Callable[[], T | None],
        model: str,
        worker: str | None,
        order: tuple[int, float, int],
        since: float = 0.0,
        decided: Callable[[], RoutingDecision | None] = lambda: None,
    ) -> None:
        self.attempt = attempt
        self.since = since  # monotonic
        self.decided = decided
        self.model = model
        self.worker = worker  # the only one that will do, or None
        self.order = order
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def could_use(self, record: WorkerRecord) -> bool:
        """Whether room on that worker may be of use."""
        return self.model == record.model and self.worker in (None, record.name)

    def __lt__(self, other: Waiter[T]) -> bool:
        return self.order < other.order


class DrainRate:
    """How many requests leave the workers per second, from the last minute's releases."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: deque[float] = deque(maxlen=RATE_SAMPLES)

    def count(self) -> None:
        """One request has left."""
        self._times.append(self._clock.monotonic())

    def per_second(self) -> float | None:
        """The rate; None until two requests have left within the window."""
        now = self._clock.monotonic()
        while self._times and now - self._times[0] > RATE_WINDOW_S:
            self._times.popleft()
        if len(self._times) < 2:
            return None
        # The silence since the last one counts: a stuck fleet drains ever more slowly.
        span = max(self._times[-1] - self._times[0], 1e-3)
        mean_gap = span / (len(self._times) - 1)
        return 1.0 / max(mean_gap, (now - self._times[0]) / len(self._times))


class Admission(Generic[T]):
    """Waiters of all models. `pump` is called whenever a worker gained room."""

    def __init__(self, clock: Clock, give_back: Callable[[T], None], *, max_queue: int) -> None:
        """`max_queue` is how many may wait at once, over all models.

        `give_back` takes what was granted to a request that left in the same tick.
        """
        self._clock = clock
        self._give_back = give_back
        self._max_queue = max_queue
        self._waiters: list[Waiter[T]] = []
        self._rate = DrainRate(clock)
        self._virtual_time = 0.0
        self._last_tag: dict[str, float] = {}
        self._arrivals = 0

    async def wait(
        self,
        attempt: Callable[[], T | None],
        principal: Principal,
        *,
        model: str,
        worker: str | None = None,
        decided: Callable[[], RoutingDecision | None] = lambda: None,
    ) -> T:
        """What `attempt`, which has just failed, returns when there is room.

        `decided` tells what it chose.

        Raises:
            Saturated: the queue is full; `retry_after` is the time it needs to drain.
            GatewayError: whatever `attempt` raises.
        """
        if len(self._waiters) >= self._max_queue:
            raise Saturated(
                f"{len(self._waiters)} requests wait already", retry_after=self.retry_after()
            )
        since, order = self._clock.monotonic(), self._order(principal)
        return await self._wait(Waiter(attempt, model, worker, order, since, decided))

    def depth(self, model: str | None = None) -> int:
        """How many wait, for one model or for all."""
        if model is None:
            return len(self._waiters)
        return sum(w.model == model for w in self._waiters)

    def waiting(self) -> Iterator[tuple[RoutingDecision, float]]:
        """What each that waits would have, and for how many seconds it has waited."""
        now = self._clock.monotonic()
        for waiter in self._waiters:
            decision = waiter.decided()
            if decision is not None:
                yield decision, now - waiter.since

    def retry_after(self) -> float:
        """Seconds until those who wait now will have been served, at the measured rate."""
        rate = self._rate.per_second()
        return UNKNOWN_RATE_WAIT_S if rate is None else max(1, len(self._waiters)) / rate

    def pump(self, worker: WorkerRecord | None, released: bool) -> None:
        """Let waiters attempt, in order; `worker` has gained room (None: any may have).

        `released` says that a request has left it, which is what the drain rate counts.
        """
        if released:
            self._rate.count()
        if not self._waiters:
            return
        able = [w for w in self._waiters if worker is None or w.could_use(worker)]
        for waiter in able[:ATTEMPTS_PER_WAKE]:
            if not waiter.future.done():
                self._offer(waiter)

    def _offer(self, waiter: Waiter[T]) -> None:
        try:
            taken = waiter.attempt()
        except GatewayError as error:
            self._waiters.remove(waiter)
            waiter.future.set_exception(error)
            return
        if taken is not None:
            self._waiters.remove(waiter)
            self._virtual_time = max(self._virtual_time, waiter.order[1])
            waiter.future.set_result(taken)

    async def _wait(self, waiter: Waiter[T]) -> T:
        insort(self._waiters, waiter)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if waiter.future.done() and not waiter.future.cancelled():
                self._return(waiter.future)
            raise
        finally:
            if waiter in self._waiters:  # the client left, or its time was over
                self._waiters.remove(waiter)

    def _return(self, granted: asyncio.Future[T]) -> None:
        if granted.exception() is None:
            self._give_back(granted.result())

    def _order(self, principal: Principal) -> tuple[int, float, int]:
        """Start-time fair queueing: a key's next tag lies one behind its last one."""
        self._arrivals += 1
        if not self._waiters:
            self._last_tag.clear()
        tag = max(self._virtual_time, self._last_tag.get(principal.key_id, 0.0)) + 1.0
        self._last_tag[principal.key_id] = tag
        return -principal.priority, tag, self._arrivals
