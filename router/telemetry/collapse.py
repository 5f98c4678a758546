"""Tells when drafting got worse and what it has to do with: class, language, load, worker, ...

Watches how far answers are from what was predicted, in accepted length and in step cost. When the
answers that share one property drift together, the property that explains it best is named.
Pure; counterpart: `router.telemetry.knowledge`, which predicts and then learns.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from router.telemetry.speeds import ACCEPTED_LENGTH, STEP_COST

if TYPE_CHECKING:
    from collections.abc import Mapping

RECENT: Final = 24
"""Answers of a model that an explanation is sought in."""

_EXPECTED_SD: Final[Mapping[str, float]] = {ACCEPTED_LENGTH: 0.15, STEP_COST: 0.12}
_SLACK: Final = 0.75
_LIMIT: Final = 9.0
_CLIP: Final = 3.0
_MIN_ANSWERS: Final = 3
_CLEAR: Final = 9.0  # squared standard errors from which an explanation is one
_AHEAD: Final = 1.8  # by what factor it must explain more than any other dimension; else wait
_MAX_VALUES: Final = 4096  # watched (model, metric, dimension, value) at once


class Sight(NamedTuple):
    """One answer: its properties by dimension, and ln(observed / predicted) by metric."""

    model: str
    wall_time: float
    properties: Mapping[str, str]
    residuals: Mapping[str, float]


class Collapse(NamedTuple):
    """What changed, where, and by how much (`factor`: the new level over the predicted one)."""

    model: str
    metric: str
    dimension: str
    value: str
    factor: float
    answers: int
    wall_time: float

    def sentence(self) -> str:
        """For an alert: one sentence an operator can act on."""
        change = f"{self.metric} is {self.factor:.2f} x what it was"
        return f"{self.model}: {change} where {self.dimension} is {self.value}"


class CollapseDetector:
    """A two-sided CUSUM per property; an alarm starts the search for the best explanation."""

    def __init__(self) -> None:
        self._recent: dict[tuple[str, str], deque[Sight]] = {}
        self._sums: dict[tuple[str, str, str, str], tuple[float, float]] = {}

    def observe(self, sight: Sight, *, alarmed: bool = False) -> tuple[Collapse, ...]:
        """Take one answer; what it made certain, if anything.

        `alarmed`: a table's own change detector raised on this answer.
        """
        found = []
        for metric, residual in sight.residuals.items():
            recent = self._recent.setdefault((sight.model, metric), deque(maxlen=RECENT))
            recent.append(sight)
            if self._drifts(sight, metric, residual) or alarmed:
                collapse = _explain(recent, metric)
                if collapse is not None:
                    found.append(collapse)
                    self._forget(sight.model, metric)
        return tuple(found)

    def _drifts(self, sight: Sight, metric: str, residual: float) -> bool:
        score = max(-_CLIP, min(_CLIP, residual / _EXPECTED_SD.get(metric, 0.2)))
        raised = False
        for dimension, value in sight.properties.items():
            key = (sight.model, metric, dimension, value)
            up, down = self._sums.get(key, (0.0, 0.0))
            up, down = max(0.0, up + score - _SLACK), max(0.0, down - score - _SLACK)
            self._sums[key] = (up, down)
            raised = raised or max(up, down) > _LIMIT
        if len(self._sums) > _MAX_VALUES:
            self._sums.clear()
        return raised

    def _forget(self, model: str, metric: str) -> None:
        """Start anew: the tables learn the new level, which is no news a second time."""
        self._recent.pop((model, metric), None)
        self._sums = {key: sums for key, sums in self._sums.items() if key[:2] != (model, metric)}


def _explain(recent: deque[Sight], metric: str) -> Collapse | None:
    """The property whose answers stand out most from all the others, if one clearly does."""
    by_dimension: dict[str, tuple[float, Collapse]] = {}
    for dimension, value in _properties(recent):
        having = (sight for sight in recent if sight.properties.get(dimension) == value)
        inside = [sight.residuals[metric] for sight in having]
        if len(inside) < _MIN_ANSWERS:
            continue
        score = _score(inside, _EXPECTED_SD.get(metric, 0.2))
        if score > by_dimension.get(dimension, (_CLEAR, None))[0]:
            newest = inside[-_MIN_ANSWERS:]  # older ones are from before
            factor, last = math.exp(sum(newest) / len(newest)), recent[-1]
            by_dimension[dimension] = (
                score,
                Collapse(last.model, metric, dimension, value, factor, len(inside), last.wall_time),
            )
    ranked = sorted(by_dimension.values(), key=lambda pair: pair[0], reverse=True)
    if not ranked or (len(ranked) > 1 and ranked[0][0] < _AHEAD * ranked[1][0]):
        return None
    return ranked[0][1]


def _properties(recent: deque[Sight]) -> list[tuple[str, str]]:
    """Every property seen, in a stable order."""
    return list(dict.fromkeys(item for sight in recent for item in sight.properties.items()))


def _score(residuals: list[float], sd: float) -> float:
    """How much of the squared deviation is explained if just these answers changed their level."""
    return sum(residuals) ** 2 / len(residuals) / sd**2
