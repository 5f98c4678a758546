"""What is written down when a request has ended: learned prefixes, spent tokens, the Outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from router.core import Status
from router.relay.delivery import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable

    from router.access import RateLimiter
    from router.core import Outcome
    from router.fleet import Fleet, PrefixIndex
    from router.fleet.lingering import Lingering
    from router.relay.flight import Flight


@dataclass(frozen=True, slots=True)
class Books:
    """Everything that learns of a finished request on the spot; all of it synchronous."""

    fleet: Fleet
    prefixes: PrefixIndex
    rates: RateLimiter
    lingering: Lingering
    record: Callable[[Outcome], None]

    def close(self, flight: Flight, outcome: Outcome) -> None:
        """Write one request down and give its slot back; Flight.finish calls this once."""
        reservation = flight.reservation
        if reservation is not None and outcome.status is Status.OK:
            self.fleet.succeeded(reservation.worker)
            self.prefixes.remember(
                reservation.record,
                flight.reading.chain,
                flight.reading.conversation,
                cache_n=outcome.timings.cache_n,
                prompt_tokens=outcome.timings.prompt_tokens,
            )
        tokens = (outcome.prompt_tokens or 0) + (outcome.completion_tokens or 0)
        self.rates.spend(outcome.key_id, tokens)
        self.record(outcome)
        if reservation is None:
            return
        if outcome.status is Status.CLIENT_GONE and flight.asked is not None:
            self.lingering.hold(reservation, was_stream=flight.asked is not Delivery.WHOLE)
        else:
            reservation.release()
