"""Frozen values for tests of the gateway: a clock to turn by hand, records, requests, decisions."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from classifier import extract, load
from router.core import Endpoint, InferenceRequest, Principal, Reason, RoutingDecision, Wishes
from workers.record import WorkerRecord
from workers.state import WorkerState


@dataclass
class HandClock:
    """Both clocks stand still until the test moves them."""

    now: float = 1000.0
    epoch: float = 1_700_000_000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.epoch + self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def record(name: str = "plain", **changes) -> WorkerRecord:
    """A ready AR worker of the model `tiny` with two slots."""
    values = {
        "model": "tiny",
        "mode": "ar",
        "effective_mode": "ar",
        "url": "http://127.0.0.1:1",
        "state": WorkerState.READY,
        "slots": 2,
        "context": 4096,
        "spec_hash": f"hash-{name}",
        "heartbeat_at": 1_700_000_000.0,
        "started_at": 1_700_000_000.0,
        "pid": 1,
    }
    return WorkerRecord(name=name, **(values | changes))


def request(text: str = "hello", *, stream: bool = False, **changes) -> InferenceRequest:
    """A chat request for `tiny`; other fields of the body go into `payload`."""
    payload = {"model": "tiny", "messages": [{"role": "user", "content": text}]}
    payload |= {"stream": True} if stream else {}
    payload |= changes.pop("payload", {})
    values = {
        "id": "request-1",
        "endpoint": Endpoint.CHAT,
        "model": "tiny",
        "body": orjson.dumps(payload),
        "payload": payload,
        "stream": stream,
        "received_at": 1000.0,
        "principal": Principal(),
        "wishes": Wishes(),
    }
    return InferenceRequest(**(values | changes))


def classified(text: str = "hello"):
    """Features and classification of a text."""
    features = extract({"messages": [{"role": "user", "content": text}]})
    return features, load().predict(features)


def decision(worker: str = "plain", mode: str = "ar", **changes) -> RoutingDecision:
    """The choice of one worker."""
    values = {"reason": Reason.ONLY_CANDIDATE, "candidates": (), "policy": "test"}
    return RoutingDecision(worker=worker, mode=mode, **(values | changes))
