"""One worker's state and record, with a single writer: whoever runs the worker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import structlog

from workers.record import WorkerRecord
from workers.state import WorkerEvent, WorkerState, advance

if TYPE_CHECKING:
    from collections.abc import Callable

    from workers.clock import Clock
    from workers.spec import WorkerSpec

log = structlog.get_logger(__name__)

# Until a start was measured: what a process takes anyhow, and an ordinary SSD.
_START_S: Final = 1.0
_READ_BYTES_PER_S: Final = 1e9


class Status:
    """The record as it is now; every change is told to `publish`, which must not block."""

    def __init__(
        self,
        spec: WorkerSpec,
        clock: Clock,
        publish: Callable[[WorkerRecord], None],
        *,
        host: str,
        features: tuple[str, ...],
    ) -> None:
        self._clock = clock
        self._publish = publish
        self.record = _first_record(spec, clock.wall(), host, features)

    @property
    def state(self) -> WorkerState:
        """The state now."""
        return self.record.state

    def advance(self, *events: WorkerEvent, **changes: Any) -> None:
        """Move by the table, change fields of the record, and publish once.

        Raises:
            IllegalTransition: the table has no such move.
        """
        before = state = self.state
        for event in events:
            state = advance(state, event)
        self.update(state=state, **changes)
        log.info(
            "worker_state",
            worker=self.record.name,
            before=before.value,
            state=state.value,
            reason=self.record.reason,
        )

    def adopt(self, spec: WorkerSpec) -> None:
        """Another configuration of the same process."""
        group = spec.exclusive_group
        self.update(aliases=spec.aliases, priority=spec.priority, exclusive_group=group)

    def hold(self, held: bool | None) -> None:
        """What was drained stays out of service until it is asked for again; see `Verb.holds`."""
        if held is not None:
            self.update(held=held)

    def update(self, **changes: Any) -> None:
        """Change fields of the record without a move; nothing is published when nothing changes."""
        changed = replace(self.record, **changes)
        if changed != self.record:
            self.record = replace(changed, heartbeat_at=self._clock.wall())
            self._publish(self.record)


def _expected_load(spec: WorkerSpec) -> float:
    """Seconds; a start with empty caches reads the files once."""
    sizes = [path.stat().st_size for path in (spec.target, spec.draft) if path and path.is_file()]
    return round(_START_S + sum(sizes) / _READ_BYTES_PER_S, 1)


def _first_record(
    spec: WorkerSpec, now: float, host: str, features: tuple[str, ...]
) -> WorkerRecord:
    return WorkerRecord(
        name=spec.name,
        model=spec.model,
        mode=spec.mode,
        effective_mode=spec.mode,
        url=spec.url or "",
        state=WorkerState.STOPPED,
        slots=spec.slots,
        context=spec.context,
        spec_hash=spec.digest(),
        heartbeat_at=now,
        aliases=spec.aliases,
        engine=spec.engine if spec.url is None else "external",
        transport=_transport(spec.url or ""),
        host=host,
        unified_kv=spec.kv == "unified",
        vision=spec.vision,
        default_thinking=spec.reasoning == "on",
        priority=spec.priority,
        load_s=_expected_load(spec),
        exclusive_group=spec.exclusive_group,
        features=features,
        draft_max=spec.n_max if spec.mode == "mtp" else None,
    )


def _transport(url: str) -> str:
    """How gateways reach the worker: only httpx speaks TLS."""
    return "httpx" if url.startswith("https://") else "http11"
