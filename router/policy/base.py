"""The seam of the policies: choose on frozen values, learn from outcomes; both synchronous."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from classifier.quick import quick
from router.core import FleetView, Outcome, RoutingDecision, Wishes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from classifier import Classification, RequestFeatures


@quick
@dataclass(frozen=True, slots=True)
class PolicyInput:
    """Everything a choice may look at.

    `prompt_tokens` is an estimate; `cached_tokens` says per worker how many of them it probably
    holds; `home` is the worker that served the conversation's last turn. `now` is monotonic
    seconds; `wall` is Unix seconds and only seeds the state epoch.
    """

    request_id: str
    model: str
    view: FleetView
    classification: Classification
    features: RequestFeatures
    prompt_tokens: float
    now: float
    wall: float
    wishes: Wishes = field(default_factory=Wishes)
    conversation: str = ""
    fingerprint: str = ""
    cached_tokens: Mapping[str, float] = field(default_factory=dict)
    home: str | None = None
    excluded: frozenset[str] = frozenset()  # tried already and failed
    max_tokens: int | None = None
    fixed_draft: bool = False  # the draft length is the client's, or cannot be chosen here


class Policy(Protocol):
    """One way to choose. Pure: no I/O, no await, no clock of its own."""

    name: str

    def choose(self, request: PolicyInput) -> RoutingDecision:
        """The decision for one request.

        A worker without a free slot may be chosen: the caller then queues for it.

        Raises:
            NoWorker: nobody can serve this now; the message says why for each worker.
            Loading: the only workers that could are still loading.
            BadRequest: `worker_not_found`, `mode_unavailable` or `context_length_exceeded`.
        """
        ...

    def reserved(self, decision: RoutingDecision) -> None:
        """A slot was taken as decided; a choice that found none is made again and costs nothing."""
        ...

    def observe(self, outcome: Outcome) -> None:
        """Learn from one finished request; never raises on odd values."""
        ...
