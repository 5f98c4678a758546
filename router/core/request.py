"""One parsed request and who sent it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from classifier.quick import quick

if TYPE_CHECKING:
    from router.core.tracing import Trace


class Endpoint(StrEnum):
    """The API routes that generate, by their path at the worker."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    RESPONSES = "/v1/responses"
    MESSAGES = "/v1/messages"
    EMBEDDINGS = "/v1/embeddings"
    RERANK = "/v1/rerank"
    INFILL = "/infill"

    @property
    def generates(self) -> bool:
        """Whether the answer is sampled tokens, so that drafting matters."""
        return self not in (Endpoint.EMBEDDINGS, Endpoint.RERANK)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sent a request. `key_id` is the key's label, never the key."""

    key_id: str = "anonymous"
    admin: bool = False
    models: frozenset[str] | None = None  # None: every model
    priority: int = 0


@quick
@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller asked of the routing itself, by headers or by MODEL@WORKER."""

    worker: str | None = None
    mode: str | None = None  # None: auto
    workload_class: str | None = None
    session: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """One request as the path sees it.

    `body` holds the client's bytes and is never edited; `payload` is its parsed form, read only.
    `model` is the configured model's name (aliases and pins resolved); times are monotonic seconds.
    """

    id: str
    endpoint: Endpoint
    model: str
    body: bytes
    payload: Mapping[str, Any]
    stream: bool
    received_at: float
    principal: Principal = field(default_factory=Principal)
    wishes: Wishes = field(default_factory=Wishes)
    conversation: str = ""  # stable over the turns of one conversation; "" when unknown
    deadline: float | None = None
    trace: Trace | None = None

    @property
    def wants_usage_chunk(self) -> bool:
        """Whether the client itself asked for the usage chunk of a stream."""
        options = self.payload.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True
