"""One process in several draft lengths: each is a candidate of its own, in the worker's slots."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from router.core import FleetView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from router.core import WorkerSnapshot
    from router.policy.base import PolicyInput


def with_arms(request: PolicyInput) -> PolicyInput:
    """The same question with every arm among the workers.

    Not where the client set the draft length itself, and a pin asks for the worker as it was
    configured, unless it asks for a mode as well.
    """
    wishes = request.wishes
    if request.fixed_draft or (wishes.worker is not None and wishes.mode is None):
        return request
    if not any(worker.record.arms for worker in request.view.workers):
        return request
    workers = tuple(arm for worker in request.view.workers for arm in _arms(worker))
    return replace(request, view=FleetView(request.view.model, workers))


def _arms(worker: WorkerSnapshot) -> Iterator[WorkerSnapshot]:
    yield worker
    if worker.record.effective_mode != worker.record.mode:
        return  # it does not draft as it should: shorter drafts would not either
    for arm in worker.record.arms:
        yield replace(worker, arm=arm)
