"""Workers of the simulated engine under real supervision, and what they published."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.waiting import until
from workers.backoff import Backoff
from workers.clock import SystemClock
from workers.launching import Host
from workers.spec import WorkerSpec

if TYPE_CHECKING:
    from pathlib import Path

    from workers.record import WorkerRecord
    from workers.state import WorkerState

PATIENCE_S = 60.0  # for what takes a second on an idle machine


@dataclass
class Published:
    """Every record in the order of publication."""

    records: list[WorkerRecord] = field(default_factory=list)

    def __call__(self, record: WorkerRecord) -> None:
        self.records.append(record)

    @property
    def last(self) -> WorkerRecord:
        return self.records[-1]

    def states(self, name: str | None = None) -> list[str]:
        """States without repetitions, of one worker or of all."""
        found = [r.state.value for r in self.records if name in (None, r.name)]
        pairs = zip(found, [None, *found], strict=False)
        return [state for state, before in pairs if state != before]

    async def reaches(self, state: WorkerState, after: int = 0) -> WorkerRecord:
        """The first record with that state from position `after` on."""

        def found() -> list[WorkerRecord]:
            return [r for r in self.records[after:] if r.state is state]

        await until(found, PATIENCE_S)
        return found()[0]


def simulated(name: str = "w", mode: str = "mtp-n3", **changes: Any) -> WorkerSpec:
    """A worker of the simulated engine; `script` are fields of its Script."""
    drafting = {"n_max": 3, "acceptance": 0.5} if mode != "ar" else {}
    script = drafting | changes.pop("script", {})
    args = ("--script", json.dumps(script), *changes.pop("args", ()))
    return WorkerSpec(name, "m", mode, engine="simulated", args=args, **changes)


def host(state_dir: Path, **changes: Any) -> Host:
    """A host whose workers are restarted quickly."""
    values: dict[str, Any] = {
        "name": "here",
        "state_dir": state_dir,
        "cluster_secret": "secret",
        "environ": dict(os.environ),
        "clock": SystemClock(),
        "rng": random.Random(1),
        "backoff": Backoff(first=0.05, cap=0.2, limit=3),
        "drain_timeout": 20.0,
    }
    return Host(**(values | changes))
