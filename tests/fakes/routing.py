"""Frozen values for tests of policies: features, snapshots, questions."""

from __future__ import annotations

from dataclasses import replace

from classifier.features import RequestFeatures, extract
from router.core import FleetView, Wishes, WorkerSnapshot
from router.policy.base import PolicyInput
from tests.fakes.gateway import record
from tests.fakes.outcomes import classification

WALL = 1_700_000_000.0


def features(**changes) -> RequestFeatures:
    """A plain short request."""
    return replace(extract({"messages": [{"role": "user", "content": "hello"}]}), **changes)


def snapshot(name: str = "plain", mode: str = "ar", **changes) -> WorkerSnapshot:
    """An idle worker with two slots; fields of the record go into `record`."""
    made = record(name, mode=mode, effective_mode=mode, **changes.pop("record", {}))
    return WorkerSnapshot(made, **({"slots": made.slots} | changes))


def trio(**changes) -> tuple[WorkerSnapshot, ...]:
    """The three modes, idle."""
    names = {"plain": "ar", "prose": "mtp-n3", "code": "dflash2-margin"}
    return tuple(snapshot(name, mode, **changes) for name, mode in names.items())


def question(*workers: WorkerSnapshot, **changes) -> PolicyInput:
    """What the policy is asked about a prose request; `wishes` fields by keyword."""
    wishes = {key: changes.pop(key) for key in ("worker", "mode") if key in changes}
    values = {
        "request_id": "request-1",
        "model": "tiny",
        "view": FleetView("tiny", workers or trio()),
        "classification": classification("prose", 1.0),
        "features": features(),
        "prompt_tokens": 100.0,
        "now": 0.0,
        "wall": WALL,
        "wishes": Wishes(**wishes),
    }
    return PolicyInput(**(values | changes))
