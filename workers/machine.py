"""What this host is made of, in one line each: processors, memory, GPUs, system."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.gpus import inventory

if TYPE_CHECKING:
    from workers.placement import GPU


@dataclass(frozen=True, slots=True)
class Machine:
    """One host. `memory_gb` in 1e9 bytes, None where it is not told."""

    system: str
    processor: str
    cores: int
    memory_gb: float | None
    gpus: tuple[GPU, ...]

    @property
    def room_gb(self) -> float | None:
        """Where workers live: the GPUs' memory if there are any, else the host's."""
        if self.gpus:
            return round(sum(gpu.total_mib for gpu in self.gpus) * 2**20 / 1e9, 2)
        return self.memory_gb

    def lines(self) -> tuple[str, ...]:
        """For a person."""
        memory = "" if self.memory_gb is None else f", {self.memory_gb:.1f} GB"
        gpus = tuple(f"GPU {g.index}: {g.name}, {g.total_mib} MiB" for g in self.gpus)
        return (f"{self.system}; {self.processor}, {self.cores} cores{memory}", *gpus)


def this_machine(path: str) -> Machine:
    """This host; programs that tell of GPUs are looked for in `path`."""
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gb=_memory_gb(),
        gpus=inventory(path),
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            named = (line.partition(":")[2] for line in lines if line.startswith("model name"))
            return next(named, "").strip() or platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (OSError, ValueError):
        return None
