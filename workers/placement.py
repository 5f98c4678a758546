"""Whether workers' devices exist on a host with these GPUs; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workers.gpus import GPU
    from workers.spec import WorkerSpec


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
