"""Transports by the name that a worker's record carries.

A transport is a class without required arguments, or `module:Name` for one that should only be
imported when a worker asks for it (in-tree for heavy ones, out-of-tree through configuration).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from router.upstream.base import Upstream, UpstreamRequest, UpstreamResponse

if TYPE_CHECKING:
    from collections.abc import Callable

UPSTREAMS: dict[str, str] = {
    "http11": "router.upstream.http11:HTTP11Upstream",
    "httpx": "router.upstream.direct:DirectUpstream",
}


def build_upstream(transport: str) -> Upstream:
    """A new upstream for `transport`, a name of `UPSTREAMS` or `module:Name`.

    Raises:
        ValueError: no such transport.
    """
    target = UPSTREAMS.get(transport, transport)
    module, _, name = target.partition(":")
    if not name:
        raise ValueError(f"unknown transport {transport!r}; known: {', '.join(sorted(UPSTREAMS))}")
    factory: Callable[[], Upstream] = getattr(import_module(module), name)
    return factory()


__all__ = ["UPSTREAMS", "Upstream", "UpstreamRequest", "UpstreamResponse", "build_upstream"]
