"""One exchange between a client and a worker, and the one Outcome it ends as."""

from __future__ import annotations

from router.relay.answers import relay
from router.relay.attended import ClientGone
from router.relay.books import Books
from router.relay.client import Client
from router.relay.exchange import Budgets, Exchange, Exchanges
from router.relay.flight import Flight, Reading
from router.relay.keep_alive import KeepAlive

__all__ = [
    "Books",
    "Budgets",
    "Client",
    "ClientGone",
    "Exchange",
    "Exchanges",
    "Flight",
    "KeepAlive",
    "Reading",
    "relay",
]
