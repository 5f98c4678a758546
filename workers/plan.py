"""Which workers of an exclusive group may be resident; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workers.spec import WorkerSpec


def resident_at_start(specs: Sequence[WorkerSpec]) -> frozenset[str]:
    """Names to start: every worker without a group, and of each group the first of top priority."""
    chosen: dict[str, WorkerSpec] = {}
    for spec in specs:
        group = spec.exclusive_group or f"\n{spec.name}"  # a group of its own
        best = chosen.setdefault(group, spec)
        if spec.priority > best.priority:
            chosen[group] = spec
    return frozenset(spec.name for spec in chosen.values())


def must_leave_for(
    name: str, specs: Iterable[WorkerSpec], running: Iterable[str]
) -> tuple[str, ...]:
    """Names that have to be unloaded before `name` may be loaded."""
    groups = {spec.name: spec.exclusive_group for spec in specs}
    group = groups.get(name)
    if group is None:
        return ()
    return tuple(other for other in running if other != name and groups.get(other) == group)
