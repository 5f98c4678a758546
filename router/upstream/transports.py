"""One upstream per transport, built when the first worker that names it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.core.errors import UpstreamFailed
from router.upstream import build_upstream

if TYPE_CHECKING:
    from router.upstream.base import Upstream


class Upstreams:
    """The gateway's transports by name; belongs to one event loop."""

    def __init__(self) -> None:
        self._built: dict[str, Upstream] = {}

    def of(self, transport: str) -> Upstream:
        """The upstream for `WorkerRecord.transport`.

        Raises:
            UpstreamFailed: a worker of a newer version names a transport unknown here.
        """
        return self._built.get(transport) or self._build(transport)

    def _build(self, transport: str) -> Upstream:
        try:
            upstream = self._built[transport] = build_upstream(transport)
        except (ValueError, ImportError, AttributeError) as error:
            raise UpstreamFailed(
                f"the worker's transport cannot be used: {error}", extra={"sent": False}
            ) from error
        return upstream

    async def aclose(self) -> None:
        """Close every pooled connection."""
        for upstream in self._built.values():
            await upstream.aclose()
