"""A slot as the dispatcher takes it: at once if there is room, else waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from router.access.admission import Admission
    from router.core import Principal

T = TypeVar("T")


async def admitted(
    admission: Admission[T], attempt: Callable[[], T | None], principal: Principal, **how: Any
) -> T:
    """What `attempt` returns, now or when there is room; see `Admission.wait`."""
    taken = attempt()
    return taken if taken is not None else await admission.wait(attempt, principal, **how)
