"""What happened to one request: exactly one Outcome each, failures too."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from classifier.quick import quick
from workers.timings import Timings

if TYPE_CHECKING:
    from classifier import Classification, RequestFeatures
    from router.core.decision import RoutingDecision
    from router.core.tracing import Trace


class Status(StrEnum):
    """How a request ended; the `outcome` label of specroute_requests_total."""

    OK = "ok"
    UPSTREAM_ERROR = "upstream_error"
    CLIENT_ERROR = "client_error"  # the worker refused the request itself (4xx)
    CLIENT_GONE = "client_gone"
    TIMEOUT = "timeout"
    SHED = "shed"  # refused: queue full, no worker, rate limit


_CUT = frozenset(("length", "max_tokens", "max_output_tokens"))  # chats', Messages', Responses'


@quick
@dataclass(frozen=True, slots=True)
class Outcome:
    """One finished request. Times in seconds; unknown is None, never 0."""

    request_id: str
    endpoint: str
    model: str
    status: Status
    wall_time: float  # when it ended, Unix seconds
    classification: Classification | None = None
    decision: RoutingDecision | None = None
    worker: str = ""
    mode: str = ""  # effective mode of the worker that answered
    worker_key: str = ""  # the worker's spec hash and arm: learned state is keyed by it
    conversation: str = ""
    fingerprint: str = ""
    key_id: str = ""
    stream: bool = False
    http_status: int = 0
    occupancy: int = 0  # requests in flight on the worker when this one began, itself included
    batch: float = 0.0  # mean requests in flight on the worker meanwhile; 0: not known
    host: str = ""  # of that worker
    beside: float = 0.0  # how many of its host's other workers were busy meanwhile, on average
    context_tokens: int | None = None
    has_image: bool = False
    has_grammar: bool = False
    queue_s: float = 0.0
    overhead_s: float = 0.0  # the gateway's own time before the upstream call
    ttft_s: float | None = None
    total_s: float = 0.0
    tpot_s: float | None = None
    itl_s: tuple[float, ...] = ()  # a bounded sample of gaps between content chunks
    timings: Timings = field(default_factory=Timings)
    prompt_tokens: int | None = None
    prompt_chars: int = 0
    completion_tokens: int | None = None
    finish_reason: str = ""
    retried: bool = False
    error_code: str = ""
    trace: Trace | None = None
    features: RequestFeatures | None = None
    answer_sample: bytes = b""  # bounded copy of the relayed bytes for the produced label

    @property
    def is_cut(self) -> bool:
        """Whether the answer ended at its limit of tokens."""
        return self.finish_reason in _CUT

    @property
    def generated(self) -> int | None:
        """Tokens of the answer, by the worker's timings or, where it sends none, its usage."""
        told = self.timings.predicted_n
        return told if told is not None else self.completion_tokens

    @property
    def prompt_read(self) -> int | None:
        """Prompt tokens beyond the cached ones; where no timings tell those apart, all of them."""
        told = self.timings.prompt_n
        return told if told is not None else self.prompt_tokens
