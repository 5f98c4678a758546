"""The gateway's vocabulary: frozen values and errors, no I/O."""

from __future__ import annotations

from router.core.decision import Candidate, CostEstimate, Reason, RoutingDecision
from router.core.errors import (
    BadRequest,
    Forbidden,
    GatewayError,
    Loading,
    MethodNotAllowed,
    MissingFeature,
    NotFound,
    NotSupported,
    NoWorker,
    RateLimited,
    Saturated,
    TooLarge,
    Unauthorized,
    UnsupportedMediaType,
    UpstreamFailed,
    UpstreamTimeout,
)
from router.core.outcome import Outcome, Status
from router.core.request import Endpoint, InferenceRequest, Principal, Wishes
from router.core.snapshot import FleetView, WorkerSnapshot

__all__ = [
    "BadRequest",
    "Candidate",
    "CostEstimate",
    "Endpoint",
    "FleetView",
    "Forbidden",
    "GatewayError",
    "InferenceRequest",
    "Loading",
    "MethodNotAllowed",
    "MissingFeature",
    "NoWorker",
    "NotFound",
    "NotSupported",
    "Outcome",
    "Principal",
    "RateLimited",
    "Reason",
    "RoutingDecision",
    "Saturated",
    "Status",
    "TooLarge",
    "Unauthorized",
    "UnsupportedMediaType",
    "UpstreamFailed",
    "UpstreamTimeout",
    "Wishes",
    "WorkerSnapshot",
]
