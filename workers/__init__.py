"""Worker processes: what they should be, what they are, and how they are kept alive."""

from __future__ import annotations

from workers.record import WorkerRecord
from workers.spec import ModelSpec, WorkerSpec
from workers.state import WorkerEvent, WorkerState
from workers.timings import Timings

__all__ = ["ModelSpec", "Timings", "WorkerEvent", "WorkerRecord", "WorkerSpec", "WorkerState"]
