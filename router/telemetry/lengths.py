"""How long answers get: a decayed log-normal per class, kind, thinking and prompt fingerprint.

The classifier's own median is the prior; the table learns how far it is off.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

from router.telemetry.stats import EffectTable, Level, Role, Shape

if TYPE_CHECKING:
    from router.telemetry.stats import Cell

SIGMA: Final = 0.8
"""Spread of ln(output tokens) within one cell, until measured."""

_Z80: Final = 1.2816  # half of an 80 % interval in standard deviations
_NORMAL = NormalDist()
_FARTHEST: Final = 6.0  # in ln, from what was expected: one absurd answer must not tell of all
_CLASS_SD, _KIND_SD, _PRINT_SD = 0.8, 0.5, 0.6


class LengthKey(NamedTuple):
    """What the length of an answer depends on."""

    model: str
    workload_class: str
    kind: str
    thinking: bool
    fingerprint: str = ""


class Length(NamedTuple):
    """A log-normal: ln(tokens) has mean `mu` and spread `sigma` (both unitless logarithms)."""

    mu: float
    sigma: float

    def expected(self, cap: int | None = None) -> float:
        """Mean tokens when no answer may exceed `cap`."""
        mean = math.exp(self.mu + 0.5 * self.sigma**2)
        if cap is None or cap <= 0:
            return mean
        depth = (math.log(cap) - self.mu) / self.sigma
        return mean * _cdf(depth - self.sigma) + cap * (1.0 - _cdf(depth))

    def quantile(self, share: float, cap: int | None = None) -> float:
        """Tokens that `share` of the answers do not exceed."""
        tokens = math.exp(self.mu + self.sigma * _NORMAL.inv_cdf(share))
        return tokens if cap is None or cap <= 0 else min(tokens, float(cap))


class LengthModel:
    """Learns ln(output tokens) relative to what the classifier expected."""

    def __init__(self) -> None:
        self.table = EffectTable(Shape(noise_sd=SIGMA, keep=200.0, cusum_limit=8.0))
        self._memo: dict[LengthKey, tuple[int, float, float]] = {}

    def predict(self, key: LengthKey, median: float, interval: tuple[float, float]) -> Length:
        """The distribution of the answer's tokens; `interval` is the classifier's 80 % one."""
        shift, spread = self._shift(key)
        prior = _sigma_of(interval)
        return Length(math.log(max(median, 1.0)) + shift, spread if spread > 0 else prior)

    def observe(self, key: LengthKey, median: float, tokens: int, *, cut: bool) -> None:
        """Learn one answer; `cut` when max_tokens ended it (its true length is only bounded)."""
        if tokens < 1:
            return
        cell = self.cell(key)
        y = math.log(tokens) - math.log(max(median, 1.0))
        y = min(_FARTHEST, max(-_FARTHEST, y))
        if cut:
            y = max(y, self.table.estimate(cell).mean)
        self.table.add(cell, y, 1.0)

    def cell(self, key: LengthKey) -> Cell:
        """The leaf of that key."""
        found = self.table.find(key)
        if found is not None:
            return found
        kind = (key.model, key.workload_class, key.kind, key.thinking)
        levels = [
            Level(("class", key.model, key.workload_class), _CLASS_SD, Role.NESTED),
            Level(("kind", *kind), _KIND_SD, Role.NESTED),
        ]
        if key.fingerprint:
            levels.append(Level(("print", *kind, key.fingerprint), _PRINT_SD, Role.NESTED))
        return self.table.cell(key, tuple(levels), 0.0)

    def _shift(self, key: LengthKey) -> tuple[float, float]:
        memo = self._memo.get(key)
        if memo is not None and memo[0] == self.table.version:
            return memo[1], memo[2]
        cell = self.cell(key)
        shift, spread = self.table.estimate(cell).mean, _measured_sigma(cell)
        if len(self._memo) > 4096:
            self._memo.clear()
        self._memo[key] = (self.table.version, shift, spread)
        return shift, spread


def _measured_sigma(cell: Cell) -> float:
    """Spread within a cell, shrunk toward SIGMA by ten pseudo-answers; 0 without data."""
    m = cell.moments
    if m.w < 2.0:
        return 0.0
    var = max(0.0, m.wyy / m.w - (m.wy / m.w) ** 2)
    return math.sqrt((m.w * var + 10.0 * SIGMA**2) / (m.w + 10.0))


def _sigma_of(interval: tuple[float, float]) -> float:
    low, high = interval
    if low <= 0.0 or high <= low:
        return SIGMA
    return math.log(high / low) / (2.0 * _Z80)


def _cdf(x: float) -> float:
    return 0.5 * (1.0 + math.erf(x * 0.7071067811865476))
