"""What a worker is: the value an agent publishes and a gateway reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from workers.arms import PLAIN, Arm
from workers.state import WorkerState


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """One worker at one instant. Times are wall-clock seconds; `context` is tokens per request."""

    name: str
    model: str
    mode: str  # as asked for
    effective_mode: str  # as it turned out: "ar" for a drafter that never drafts
    url: str
    state: WorkerState
    slots: int
    context: int
    spec_hash: str
    heartbeat_at: float
    started_at: float = 0.0
    aliases: tuple[str, ...] = ()
    engine: str = "llama-server"
    transport: str = "http11"
    host: str = ""
    pid: int | None = None
    reason: str = ""  # why it is not ready, or degraded: one sentence
    build: str = ""
    argv: tuple[str, ...] = ()
    log_path: str = ""
    log_tail: tuple[str, ...] = ()
    memory_bytes: int | None = None  # resident
    gpu_memory_bytes: int | None = None
    progress: float = 0.0  # of loading, 0 to 1
    restarts: int = 0
    crash: str = ""  # why its last process ended by itself; kept after it is back
    crashed_at: float = 0.0
    unified_kv: bool = False
    vision: bool = False
    default_thinking: bool = False
    priority: int = 0
    load_s: float = 0.0  # from start to ready: as measured last, before that by its files' size
    exclusive_group: str | None = None
    held: bool = False  # drained by an order: nobody loads it on demand, only another order does
    features: tuple[str, ...] = ("tools", "grammar", "json_schema", "logprobs", "n")
    arms: tuple[Arm, ...] = ()  # what it offers per request beside its effective mode
    draft_max: int | None = None  # tokens drafted at most, where its mode leaves that open

    @property
    def speed_key(self) -> str:
        """What its learned speed is kept under; tells the draft length if the mode does not."""
        if self.draft_max is None or self.effective_mode == PLAIN:
            return self.spec_hash
        return f"{self.spec_hash}~n{self.draft_max}"

    def dumps(self) -> bytes:
        """The record as JSON bytes."""
        return orjson.dumps(asdict(self))

    @classmethod
    def loads(cls, data: bytes | str) -> WorkerRecord:
        """Read `dumps`' bytes; unknown fields of newer versions are ignored.

        Raises:
            ValueError: not a record.
        """
        values = orjson.loads(data)
        if not isinstance(values, Mapping):
            raise ValueError("a worker record must be a JSON object")
        known: dict[str, Any] = {k: v for k, v in values.items() if k in cls.__slots__}
        try:
            known["state"] = WorkerState(known["state"])
            for key in ("aliases", "argv", "features", "log_tail"):
                if key in known:
                    known[key] = tuple(known[key])
            known["arms"] = tuple(map(Arm.read, known.get("arms", ())))
            return cls(**known)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a worker record: {error}") from error
