"""A small fleet with a known truth before a policy: one request at a time, at a stated load."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from classifier.features import extract
from router.core import FleetView, Outcome, Status, WorkerSnapshot
from router.policy.base import PolicyInput
from router.simulation.stage import cell_classification
from workers.record import WorkerRecord
from workers.state import WorkerState
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.policy.base import Policy

MODEL: Final = "model"
_START: Final = 1_800_000_000.0  # any fixed Unix time: a run must not depend on the calendar
_SLOTS: Final = 64
_DRAFTED_PER_STEP: Final = 3


class Request(NamedTuple):
    """One request as it is: its class, answer tokens, noise of ln v, and requests in flight."""

    kind: str
    tokens: int
    noise: float
    load: int
    prompt_tokens: float = 0.0
    conversation: str = ""
    home: str | None = None
    held: Mapping[str, float] | None = None  # prompt tokens in each worker's cache


class World:
    """Workers by name and mode; `serve` returns who served and teaches the policy."""

    def __init__(
        self, modes: Mapping[str, str], policy: Policy, *, prompt_speed: float = 0.0
    ) -> None:
        self.policy = policy
        self._records = {name: _record(name, mode) for name, mode in modes.items()}
        self._features = extract({"messages": []})  # nothing special is asked for
        self._prompt_speed = prompt_speed
        self._seconds = 0.0
        self._count = 0

    def serve(
        self,
        request: Request,
        speeds: Mapping[str, float],
        lengths: Mapping[str, float] | None = None,
    ) -> str:
        """Let the policy choose; `speeds` are tokens per second, `lengths` mean accepted ones.

        Without `lengths` the workers report no draft counts.
        """
        self._count += 1
        decision = self.policy.choose(self._question(request))
        self.policy.reserved(decision)
        arm = decision.worker
        seconds = (request.tokens - 1) / (speeds[arm] * math.exp(request.noise))
        self._seconds += seconds / request.load
        fresh = request.prompt_tokens - (request.held or {}).get(arm, 0.0)
        length = None
        if lengths is not None:  # the noise is the text's: it shows in what is accepted
            length = lengths[arm] * (math.exp(request.noise) if lengths[arm] > 1.0 else 1.0)
        timings = self._timings(request, seconds, fresh, length)
        self.policy.observe(
            Outcome(
                request_id=f"r{self._count}",
                endpoint="simulation",
                model=MODEL,
                status=Status.OK,
                wall_time=_START + self._seconds,
                classification=cell_classification(request.kind),
                decision=decision,
                worker=arm,
                mode=decision.mode,
                worker_key=arm,
                occupancy=request.load,
                context_tokens=round(request.prompt_tokens),
                total_s=seconds,
                timings=timings,
                completion_tokens=request.tokens,
            )
        )
        return arm

    def _timings(
        self, request: Request, seconds: float, fresh: float, length: float | None
    ) -> Timings:
        decoded = request.tokens - 1
        accepted = None if length is None else round(decoded * (1.0 - 1.0 / max(1.0, length)))
        prompt = max(0, round(fresh)) if self._prompt_speed else 0
        return Timings(
            prompt_n=prompt,
            prompt_ms=1000.0 * prompt / self._prompt_speed if self._prompt_speed else 0.0,
            predicted_n=request.tokens,
            predicted_ms=1000.0 * seconds,
            draft_n=None if accepted is None else _DRAFTED_PER_STEP * (decoded - accepted),
            draft_n_accepted=accepted,
        )

    def _question(self, request: Request) -> PolicyInput:
        busy = request.load - 1
        view = tuple(
            WorkerSnapshot(record, slots=_SLOTS, in_flight=busy, total_in_flight=busy)
            for record in self._records.values()
        )
        return PolicyInput(
            request_id=f"r{self._count}",
            model=MODEL,
            view=FleetView(MODEL, view),
            classification=cell_classification(request.kind),
            features=self._features,
            prompt_tokens=request.prompt_tokens,
            now=self._seconds,
            wall=_START + self._seconds,
            conversation=request.conversation,
            home=request.home,
            cached_tokens=request.held or {},
        )


def _record(name: str, mode: str) -> WorkerRecord:
    return WorkerRecord(
        name=name,
        model=MODEL,
        mode=mode,
        effective_mode=mode,
        url="",
        state=WorkerState.READY,
        slots=_SLOTS,
        context=1_000_000,
        spec_hash=name,
        heartbeat_at=0.0,
    )
