"""The workers as this gateway sees them: views, reservations, leases, breakers, prefixes."""

from __future__ import annotations

from router.fleet.breaker import Breaker
from router.fleet.live import Fleet, Reservation, Tenant
from router.fleet.pins import Pin
from router.fleet.prefix import Chain, PrefixIndex, read_chain

__all__ = [
    "Breaker",
    "Chain",
    "Fleet",
    "Pin",
    "PrefixIndex",
    "Reservation",
    "Tenant",
    "read_chain",
]
