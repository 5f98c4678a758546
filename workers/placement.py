"""Whether workers' devices exist on a host with these GPUs; pure."""

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
