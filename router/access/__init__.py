"""Who may ask, how often, and in which order they wait."""

from __future__ import annotations

from router.access.admission import Admission
from router.access.auth import Authenticator
from router.access.keys import KeyEntry, KeyRing, hash_key
from router.access.rate_limit import RateLimiter

__all__ = ["Admission", "Authenticator", "KeyEntry", "KeyRing", "RateLimiter", "hash_key"]
