"""A LiteLLM proxy or Router chooses among its deployments by class and measured speed.

Loaded by LiteLLM as a callback: `router.plugins.litellm_router.strategy` under a proxy's
`litellm_settings.callbacks`, or a Strategy() in `litellm.callbacks`. It takes part where LiteLLM
filters the healthy deployments of a model: what is cooling down or over its limits never gets here,
and retries and fallbacks stay LiteLLM's. Speeds are learned from every finished request. Each
deployment says what it is in `model_info.specroute: {mode, slots, context}`, or leaves it out.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import structlog
from litellm.integrations.custom_logger import CustomLogger

from classifier import extract, fingerprint, load
from router.core import FleetView, GatewayError, Outcome, Status, WorkerSnapshot
from router.fleet import read_chain
from router.policy import Knowledge, PolicySettings, build_policy
from router.policy.base import PolicyInput
from workers.clock import SystemClock
from workers.record import WorkerRecord
from workers.state import WorkerState
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from classifier import Classification, RequestFeatures
    from router.core import RoutingDecision
    from workers.clock import Clock

    Deployment = Mapping[str, Any]

log = structlog.get_logger(__name__)

FORGET_S: Final = 600.0
"""A request that LiteLLM never reported the end of (its client left) counts as ended after this."""
_FIELDS: Final = ("tools", "response_format", "max_tokens", "max_completion_tokens", "temperature")


class Strategy(CustomLogger):  # type: ignore[misc]
    """Class- and speed-aware choice among a model's deployments; one per process."""

    def __init__(self, settings: PolicySettings | None = None, clock: Clock | None = None) -> None:
        super().__init__()
        self._clock = clock or SystemClock()
        self._knowledge = Knowledge()
        self._policy = build_policy("learned", settings or PolicySettings(), self._knowledge)
        self._predictor = load()
        self._running: dict[str, deque[float]] = {}  # by deployment: when each request began
        self.last: RoutingDecision | None = None  # for whoever wants to see why
        self.learned = 0  # answers learned from

    async def async_filter_deployments(
        self,
        model: str,
        healthy_deployments: list[dict[str, Any]],
        messages: list[dict[str, Any]] | None,
        request_kwargs: dict[str, Any] | None = None,
        parent_otel_span: object = None,
    ) -> list[dict[str, Any]]:
        """The one deployment that will finish this request soonest; all where there is no choice.

        What is not a chat, and whatever the policy refuses, is left to LiteLLM.
        """
        if not messages or len(healthy_deployments) < 2:
            return healthy_deployments
        payload = _payload(messages, request_kwargs or {})
        try:
            decision = self._policy.choose(self._question(model, healthy_deployments, payload))
        except GatewayError as error:
            log.info("left_to_litellm", model=model, reason=error.message)
            return healthy_deployments
        self._policy.reserved(decision)
        self.last = decision
        self._running.setdefault(decision.worker, deque()).append(self._clock.monotonic())
        return [one for one in healthy_deployments if _id(one) == decision.worker]

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: datetime, end_time: datetime
    ) -> None:
        """Learn from one answer."""
        info = _info(kwargs)
        self._ended(info)
        messages = kwargs.get("messages")
        if info.get("id") is None or not isinstance(messages, list):
            return
        payload = _payload(messages, kwargs.get("optional_params") or {})
        features, found = self._read(payload)
        began = kwargs.get("completion_start_time") or start_time
        timings = timings_of(response_obj, end_time - began)
        self.learned += 1
        record = _record(_group(kwargs), {"model_info": info})
        self._policy.observe(
            Outcome(
                request_id=str(kwargs.get("litellm_call_id", "")),
                endpoint="/v1/chat/completions",
                model=record.model,
                status=Status.OK,
                wall_time=self._clock.wall(),
                classification=found,
                worker=record.name,
                mode=record.mode,
                worker_key=record.spec_hash,
                fingerprint=fingerprint(payload, record.model),
                occupancy=1 + len(self._running.get(record.name, ())),
                timings=timings,
                prompt_tokens=timings.prompt_tokens,
                prompt_chars=features.prompt_chars,
                completion_tokens=timings.predicted_n,
            )
        )

    async def async_log_failure_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: datetime, end_time: datetime
    ) -> None:
        """Whatever went wrong, it no longer runs."""
        self._ended(_info(kwargs))

    def _question(
        self, model: str, deployments: Sequence[Deployment], payload: Mapping[str, Any]
    ) -> PolicyInput:
        features, found = self._read(payload)
        now = self._clock.monotonic()
        chain = read_chain(payload)
        workers = [self._snapshot(_record(model, one), now) for one in deployments]
        workers.sort(key=lambda worker: worker.name)
        chars = features.prompt_chars
        return PolicyInput(
            request_id=chain.conversation,
            model=model,
            view=FleetView(model, tuple(workers)),
            classification=found,
            features=features,
            prompt_tokens=self._knowledge.prompt_tokens(model, found.language, chars),
            now=now,
            wall=self._clock.wall(),
            conversation=chain.conversation,
            fingerprint=fingerprint(payload, model),
            max_tokens=features.max_tokens,
        )

    def _read(self, payload: Mapping[str, Any]) -> tuple[RequestFeatures, Classification]:
        features = extract(payload)
        return features, self._predictor.predict(features)

    def _snapshot(self, record: WorkerRecord, now: float) -> WorkerSnapshot:
        running = self._running.get(record.name, deque())
        while running and now - running[0] > FORGET_S:
            running.popleft()
        return WorkerSnapshot(
            record=record,
            slots=record.slots,
            in_flight=len(running),
            total_in_flight=len(running),
            remaining_tokens=tuple([100.0] * len(running)),
        )

    def _ended(self, info: Mapping[str, Any]) -> None:
        running = self._running.get(str(info.get("id")))
        if running:
            running.popleft()


def timings_of(response: Any, decoding: timedelta) -> Timings:
    """llama-server's own figures where they came through, else what was seen from here.

    LiteLLM keeps the `timings` of a plain answer; of a stream only the counts remain, and
    `decoding` is the time from the first chunk to the last.
    """
    own = getattr(response, "timings", None)
    if isinstance(own, dict):
        return Timings.from_payload(own)
    usage = getattr(response, "usage", None)
    return Timings.from_payload(
        {
            "prompt_n": getattr(usage, "prompt_tokens", None),
            "predicted_n": getattr(usage, "completion_tokens", None),
            "predicted_ms": 1000.0 * decoding.total_seconds(),
        }
    )


def _payload(messages: list[dict[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The body of the request, as far as it says something about the answer."""
    known = {name: fields[name] for name in _FIELDS if fields.get(name) is not None}
    return {"messages": messages, **known}


def _record(model: str, deployment: Deployment) -> WorkerRecord:
    """A deployment as a worker that is up: LiteLLM shows only healthy ones."""
    info = deployment.get("model_info") or {}
    said = info.get("specroute") or {}
    mode = str(said.get("mode", "ar"))
    name = str(info.get("id"))
    return WorkerRecord(
        name=name,
        model=model,
        mode=mode,
        effective_mode=mode,
        url="",
        state=WorkerState.READY,
        slots=int(said.get("slots", 4)),
        context=int(said.get("context", 1_000_000)),
        spec_hash=name,
        heartbeat_at=0.0,
        vision=True,  # whether it takes images is LiteLLM's to know
    )


def _id(deployment: Deployment) -> str:
    return str((deployment.get("model_info") or {}).get("id"))


def _info(kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The deployment's `model_info`, of a finished call."""
    return (kwargs.get("litellm_params") or {}).get("model_info") or {}


def _group(kwargs: Mapping[str, Any]) -> str:
    """The name under which the model was asked for."""
    metadata = (kwargs.get("litellm_params") or {}).get("metadata") or {}
    return str(metadata.get("model_group") or kwargs.get("model"))


strategy = Strategy()
"""What a proxy's config names."""
