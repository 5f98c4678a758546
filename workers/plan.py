"""Which workers of an exclusive group may be resident, and what a new configuration means; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workers.spec import WorkerSpec


# Taken over by a running worker: they change nothing about its process.
_IN_PLACE = ("aliases", "priority", "acceptance_floor", "load_timeout", "exclusive_group")


@dataclass(frozen=True, slots=True)
class Changes:
    """What another configuration means for the workers of a host."""

    gone: tuple[str, ...]
    new: tuple[WorkerSpec, ...]
    changed: tuple[WorkerSpec, ...]  # another process is needed
    adopted: tuple[WorkerSpec, ...]  # the same process will do

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.gone or self.new or self.changed or self.adopted)


def difference(before: Sequence[WorkerSpec], after: Sequence[WorkerSpec]) -> Changes:
    """From one list of workers to another; what is the same in both is in none of the parts."""
    old = {spec.name: spec for spec in before}
    names = {spec.name for spec in after}
    kept = [(old[spec.name], spec) for spec in after if spec.name in old]
    other = [(was, spec) for was, spec in kept if was != spec]
    light = [spec for was, spec in other if _only_in_place(was, spec)]
    return Changes(
        gone=tuple(name for name in old if name not in names),
        new=tuple(spec for spec in after if spec.name not in old),
        changed=tuple(spec for was, spec in other if not _only_in_place(was, spec)),
        adopted=tuple(light),
    )


def _only_in_place(was: WorkerSpec, spec: WorkerSpec) -> bool:
    values: dict[str, Any] = {name: getattr(was, name) for name in _IN_PLACE}
    return replace(spec, **values) == was


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
