"""Whether workers' devices exist on a host with these GPUs, and have the room; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workers.spec import WorkerSpec


@dataclass(frozen=True, slots=True)
class GPU:
    """One device. Memory in MiB."""

    index: int
    name: str
    total_mib: int
    free_mib: int


def misplaced(spec: WorkerSpec, gpus: tuple[GPU, ...]) -> tuple[str, ...]:
    """One sentence per device that is not there; nothing is said where no GPU could be listed."""
    if not gpus:
        return ()
    there = {gpu.index for gpu in gpus}
    wanted = [*spec.gpu.devices, *spec.gpu.draft_devices]
    have = ", ".join(f"{gpu.index} ({gpu.name})" for gpu in gpus)
    return tuple(
        f"there is no GPU {device}, only {have}: correct gpu.devices"
        for device in dict.fromkeys(wanted)
        if isinstance(device, int) and device not in there
    )


def too_big(
    spec: WorkerSpec, gpus: tuple[GPU, ...], needed: float, savings: dict[str, float]
) -> tuple[str, ...]:
    """A sentence if the worker alone needs more than its devices have, with what would help.

    Args:
        spec: the worker; one whose layers are not all on the devices is not judged.
        gpus: the devices of this host.
        needed: bytes.
        savings: bytes needed after each change that could be made.
    """
    chosen = [gpu for gpu in gpus if gpu.index in spec.gpu.devices]
    room = sum(gpu.total_mib for gpu in chosen) * 2**20
    whole = spec.gpu.layers in (None, "all")
    if not chosen or not whole or needed <= room or len(chosen) != len(spec.gpu.devices):
        return ()
    tries = "; ".join(f"with {name} {_gb(less)}" for name, less in savings.items())
    problem = f"does not fit, needs {_gb(needed)} of {_gb(room)} GB"
    return (f"{problem}: {tries or 'use a smaller model, or more devices'}",)


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f}"
