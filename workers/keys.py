"""Secrets derived from the cluster secret: worker keys, and seals on what travels through Redis.

Redis is a shared medium: whoever can write to it must still not be able to invent a worker or order
one about. Sealing is HMAC-SHA256, with a purpose in front so that a seal of one kind of message is
worth nothing on another.
"""

from __future__ import annotations

import hmac

_HEX_DIGITS = 64  # of a SHA-256


class SealBroken(ValueError):
    """A message whose seal is missing or was made with another cluster secret."""


def worker_api_key(cluster_secret: str, worker_name: str) -> str:
    """The private key of one llama-server: HMAC-SHA256 of the worker's name, 64 hex digits.

    Agent and gateway derive it on their own, so that it never travels and is never in an argv.
    """
    return _hmac(cluster_secret, worker_name.encode())


def seal(cluster_secret: str, purpose: str, payload: bytes) -> bytes:
    """`payload` behind its HMAC, as bytes that `unseal` takes apart."""
    return f"{_digest(cluster_secret, purpose, payload)}:".encode() + payload


def unseal(cluster_secret: str, purpose: str, sealed: bytes) -> bytes:
    """The payload of a sealed message.

    Raises:
        SealBroken: not sealed for this purpose with this secret.
    """
    seal_found, colon, payload = sealed[:_HEX_DIGITS], sealed[_HEX_DIGITS:][:1], sealed[65:]
    expected = _digest(cluster_secret, purpose, payload).encode()
    if colon != b":" or not hmac.compare_digest(seal_found, expected):
        raise SealBroken(f"a {purpose} that was not sealed with this cluster's secret")
    return payload


def _digest(cluster_secret: str, purpose: str, payload: bytes) -> str:
    return _hmac(cluster_secret, purpose.encode() + b"\n" + payload)


def _hmac(cluster_secret: str, message: bytes) -> str:
    return hmac.new(cluster_secret.encode(), message, "sha256").hexdigest()
