"""What is known of one request while it is under way, and the one Outcome it ends as.

`Flight.finish` is synchronous, so that a cancellation cannot cut it short: the slot goes back and
exactly one Outcome is recorded, in every way a request can end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from classifier.quick import quick
from router.core import Endpoint, GatewayError, Outcome, Status
from workers.arms import N_MAX, P_MIN, chosen_by_client
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Callable

    from classifier import Classification, RequestFeatures
    from router.core import InferenceRequest, RoutingDecision
    from router.fleet import Chain, Reservation
    from router.relay.delivery import Delivery
    from workers.arms import Arm
    from workers.clock import Clock
    from workers.record import WorkerRecord

GAPS_KEPT: Final = 256  # per request: enough for percentiles, bounded for long answers

_PASSES_FIELDS: Final = (Endpoint.CHAT, Endpoint.COMPLETIONS, Endpoint.INFILL)
"""Where llama-server reads its own fields; it converts the bodies of the others."""


@quick
@dataclass(frozen=True, slots=True)
class Account:
    """What an answer said about itself, as far as it was read."""

    timings: Timings = field(default_factory=Timings)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str = ""
    sample: bytes = b""


@quick
@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from a request before anybody was asked; `prompt_tokens` is an estimate."""

    features: RequestFeatures
    classification: Classification
    fingerprint: str
    chain: Chain
    conversation: str
    prompt_tokens: float


class Flight:
    """One request under way. Times are monotonic seconds."""

    __slots__ = (
        "_clock",
        "_close",
        "_done",
        "asked",
        "decision",
        "error_code",
        "excluded",
        "first_content_at",
        "gaps",
        "http_status",
        "last_content_at",
        "opened_at",
        "queue_s",
        "reader",
        "reading",
        "remote",
        "request",
        "reservation",
        "retried",
        "status",
        "worker",
    )

    def __init__(
        self,
        request: InferenceRequest,
        reading: Reading,
        clock: Clock,
        close: Callable[[Flight, Outcome], None],
    ) -> None:
        """`close` is given the Outcome, once, and gives the slot back."""
        self.request = request
        self.reading = reading
        self._clock = clock
        self._close = close
        self._done = False
        self.decision: RoutingDecision | None = None
        self.reservation: Reservation | None = None
        self.excluded: frozenset[str] = frozenset()
        self.retried = False
        self.queue_s = 0.0
        self.remote = ""  # the model elsewhere that answers, and why
        self.opened_at: float | None = None
        self.first_content_at: float | None = None
        self.last_content_at: float | None = None
        self.gaps: list[float] = []
        self.asked: Delivery | None = None  # how the worker was asked, once it was
        self.reader: Callable[[], Account] = Account  # reads the answer's own figures
        # Until something else is known, whoever ends this early is the client.
        self.status = Status.CLIENT_GONE
        self.http_status = 0
        self.error_code = ""

    @property
    def draft_is_fixed(self) -> bool:
        """Whether the client set the draft length itself, or its endpoint would lose the field."""
        return self.chooses_draft or self.request.endpoint not in _PASSES_FIELDS

    @property
    def chooses_draft(self) -> bool:
        """Whether the client set the draft length itself."""
        payload = self.request.payload
        return N_MAX in payload or P_MIN in payload

    @property
    def is_over(self) -> bool:
        """Whether its books are closed: what is left is to send what is ready."""
        return self._done

    @property
    def overhead_s(self) -> float:
        """The gateway's own time before the worker was asked, waiting for a slot left out."""
        until = self.opened_at if self.opened_at is not None else self._clock.monotonic()
        return max(0.0, until - self.request.received_at - self.queue_s)

    def saw_content(self, events: int) -> None:
        """`events` content events have just been sent to the client."""
        now = self._clock.monotonic()
        if self.last_content_at is None:
            self.first_content_at = now
        elif len(self.gaps) < GAPS_KEPT:
            self.gaps.append(now - self.last_content_at)
        self.last_content_at = now
        if self.reservation is not None:
            self.reservation.produced += events

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The x-specroute headers, as far as they are known."""
        rows = [(b"x-request-id", self.request.id.encode("latin-1", "replace"))]
        workload_class, decision = self.reading.classification.workload_class, self.decision
        if decision is None:
            rows.append((b"x-specroute-class", workload_class.encode()))
        else:
            rows += _chosen(workload_class, decision.worker, decision.mode, decision.reason)
        if self.remote:
            rows.append((b"x-specroute-fallback", self.remote.encode("latin-1", "replace")))
        rows.append((b"x-specroute-overhead-ms", b"%.3f" % (1000.0 * self.overhead_s)))
        return rows

    def succeed(self, http_status: int = 200) -> None:
        """The worker's answer went out whole."""
        self.status = Status.OK
        self.http_status = http_status

    def fail(self, error: GatewayError) -> None:
        """The request ends with `error`."""
        self.status = _STATUS_OF.get(error.code or "", _by_http(error.status))
        self.http_status = error.status
        self.error_code = error.code or error.type

    def leave_worker(self) -> None:
        """Give the slot back and look elsewhere: this worker failed."""
        if self.reservation is not None:
            self.reservation.release()
            self.excluded |= {self.reservation.worker}
            self.reservation = None
        self.retried = True

    def finish(self) -> None:
        """Close the books on this request: slot back, one Outcome; later calls do nothing."""
        if self._done:
            return
        self._done = True
        account, self.reader = self.reader(), Account  # what reads it may hold this flight
        self._close(self, self._outcome(account))

    def _outcome(self, account: Account) -> Outcome:
        request, reading, now = self.request, self.reading, self._clock.monotonic()
        worker, mode, key = self._served_by()
        first, held = self.first_content_at, self.reservation
        batch, beside = held.meanwhile() if held is not None else (0.0, 0.0)
        return Outcome(
            request_id=request.id,
            endpoint=str(request.endpoint),
            model=request.model,
            status=self.status,
            wall_time=self._clock.wall(),
            classification=reading.classification,
            decision=self.decision,
            worker=worker,
            mode=mode,
            worker_key=key,
            conversation=reading.conversation,
            fingerprint=reading.fingerprint,
            key_id=request.principal.key_id,
            stream=request.stream,
            http_status=self.http_status,
            occupancy=held.occupancy if held is not None else 0,
            batch=batch,
            host=held.record.host if held is not None else "",
            beside=beside,
            context_tokens=_context(account.timings),
            has_image=reading.features.has_images,
            has_grammar=reading.features.has_grammar,
            queue_s=self.queue_s,
            overhead_s=self.overhead_s,
            ttft_s=first - request.received_at if first is not None else None,
            total_s=now - request.received_at,
            tpot_s=self._tpot(account.completion_tokens),
            itl_s=tuple(self.gaps),
            # What another machine measured says nothing about ours.
            timings=account.timings if not self.remote else Timings(),
            prompt_tokens=account.prompt_tokens,
            prompt_chars=reading.features.prompt_chars,
            completion_tokens=account.completion_tokens,
            finish_reason=account.finish_reason,
            retried=self.retried,
            error_code=self.error_code,
            trace=request.trace,
            features=reading.features,
            answer_sample=account.sample,
        )

    def _served_by(self) -> tuple[str, str, str]:
        """Worker, mode, and what its speed is learned under.

        A fallback's worker and mode stand in the decision, and nothing is learned of it.
        """
        if self.reservation is not None:
            record = self.reservation.record
            arm = self._arm_of(record)
            if arm is None:
                return record.name, record.effective_mode, record.speed_key
            return record.name, arm.mode, record.spec_hash + arm.key
        if self.remote and self.decision is not None:
            return self.decision.worker, self.decision.mode, ""
        return "", "", ""

    def _arm_of(self, record: WorkerRecord) -> Arm | None:
        """The draft length that it was asked for, where that is not the worker's own."""
        if self.decision is not None and self.decision.overrides:
            return next((arm for arm in record.arms if arm.mode == self.decision.mode), None)
        if self.chooses_draft:
            return chosen_by_client(record.effective_mode, record.arms, self.request.payload)
        return None

    def _tpot(self, tokens: int | None) -> float | None:
        """(last - first token time) / (tokens - 1), in seconds."""
        first, last = self.first_content_at, self.last_content_at
        if not self.request.stream or tokens is None or tokens < 2 or first is None or last is None:
            return None
        return (last - first) / (tokens - 1)


_STATUS_OF: Final = {
    "timeout": Status.TIMEOUT,
    "worker_failed": Status.UPSTREAM_ERROR,
    "no_worker": Status.SHED,
    "loading": Status.SHED,
}


@lru_cache(maxsize=4096)
def _chosen(
    workload_class: str, worker: str, mode: str, reason: str
) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of a choice: there are few different ones, and one with every answer."""
    return (
        (b"x-specroute-class", workload_class.encode()),
        (b"x-specroute-worker", worker.encode()),
        (b"x-specroute-mode", mode.encode()),
        (b"x-specroute-reason", reason.encode()),
    )


def _by_http(status: int) -> Status:
    if status == 429:
        return Status.SHED
    return Status.CLIENT_ERROR if status < 500 or status == 501 else Status.UPSTREAM_ERROR


def _context(timings: Timings) -> int | None:
    """Tokens in the context at the end: prompt_n + cache_n + predicted_n."""
    if timings.prompt_tokens is None:
        return None
    return timings.prompt_tokens + (timings.predicted_n or 0)
