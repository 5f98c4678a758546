"""The workers as this gateway sees them: views, reservations, leases, breakers, prefixes."""

from __future__ import annotations

from router.fleet.breaker import Breaker
from router.fleet.live import Fleet, Reservation
from router.fleet.prefix import Chain, PrefixIndex, read_chain

__all__ = ["Breaker", "Chain", "Fleet", "PrefixIndex", "Reservation", "read_chain"]
