"""Keeps 90 % forecast intervals honest: each end moves until a twentieth of answers is beyond.

What is known of speeds and lengths gives an interval its shape; what it cannot know (a neighbour on
the same processor, a prompt read slower than before) shows only in how often answers miss it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from router.core import Status

if TYPE_CHECKING:
    from router.core import Outcome

_BEYOND: Final = 0.05  # of the answers beyond each end of a 90 % interval
_FIRST_STEP: Final = 0.3  # of the logarithm of the reach; later steps are smaller, down to
_LAST_STEP: Final = 0.04  # which follows a change of the machine within some fifty answers
_SETTLING: Final = 20.0  # answers after which the step has halved
_MOST: Final = math.log(6.0)  # neither end ever reaches more than so many times as far as it would
_LEAST: Final = math.log(0.25)


class Reach(NamedTuple):
    """How many times as far as its model says each end reaches, in standard deviations."""

    low: float = 1.0
    high: float = 1.0


AS_MODELLED: Final = Reach()

_AT_FIRST: Final = 0.15
"""Logarithm of both reaches before any answer: what is known too little of is thought too sure."""


class IntervalCalibration:
    """Adaptive conformal inference (Gibbs and Candès, NeurIPS 2021) on both reaches, by model."""

    def __init__(self) -> None:
        self._logs: dict[str, list[float]] = {}  # model: log reach below, above, answers seen

    def reach(self, model: str) -> Reach:
        """What to multiply both ends' distance from the median with, on a logarithmic scale."""
        logs = self._logs.get(model)
        below, above = (_AT_FIRST, _AT_FIRST) if logs is None else logs[:2]
        return Reach(math.exp(below), math.exp(above))

    def observe(self, outcome: Outcome) -> None:
        """One answer, if it ended as it should at the first attempt and had a forecast."""
        interval = _forecast(outcome)
        if interval is None:
            return
        logs = self._logs.setdefault(outcome.model, [_AT_FIRST, _AT_FIRST, 0.0])
        step = max(_LAST_STEP, _FIRST_STEP / (1.0 + logs[2] / _SETTLING))
        seconds = outcome.total_s - outcome.queue_s
        for end, missed in enumerate((seconds < interval[0], seconds > interval[1])):
            moved = logs[end] + step * (missed - _BEYOND)
            logs[end] = min(_MOST, max(_LEAST, moved))
        logs[2] += 1.0


def _forecast(outcome: Outcome) -> tuple[float, float] | None:
    decision = outcome.decision
    if decision is None or outcome.status is not Status.OK or outcome.retried:
        return None
    if decision.worker != outcome.worker:  # a remote model answered
        return None
    estimate = decision.estimate()
    if estimate is None:
        return None
    low, high = estimate.interval_s
    return (low, high) if high > low else None
