"""Thompson's probabilities inside a budget, computed rather than sampled so as to be logged.

An arm is tried with the probability that it is the best one, if trying it once is worth its price
for the requests to come, and if the budget can pay: the predicted extra seconds of the last
`exploration_window` requests stay below `exploration_budget` of the seconds served.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router.policy.settings import PolicySettings

_INV_SQRT_2PI = 0.3989422804014327
_SQRT_HALF = 0.7071067811865476
_NOISE = 0.2  # relative spread of one observation
_HOPELESS = 5.0  # standard deviations behind the best
_REMEMBERED = 4000.0  # requests behind the shares of the classes
_TRIFLE = 0.006  # gains below this share of a request are not worth looking for


_ADVANCE = 150.0
_REPAID = 500.0
"""Trying pays most at the start, so the budget of the first 150 requests may be spent on the first
few; the advance is paid back by the 500th, well within the window over which the budget holds."""


_PRUDENCE = 0.85
"""Of the budget that is spent: what was spent stays, but the seconds served that it is measured
against may shrink by so much while the window moves on."""

_KNOWN = 2.0
"""Weight of answers from which a loss in seconds is more than a guess: the limit in seconds holds
from there on, the limit as a share of the request always."""


class Option(NamedTuple):
    """A worker as the explorer sees it: predicted seconds, their sd, the decode seconds, the
    answers behind them, the sd of what all drafters share (0 for AR), and the most that an answer
    can tell: the sd of all that is unknown of this one, where it tells of nothing else."""

    total: float
    spread: float
    decode: float
    samples: float = 0.0
    group: float = 0.0
    most: float = math.inf

    def unknown(self, best: Option) -> float:
        """Sd of what an answer of this one can tell against `best`.

        Between a drafter and AR that includes what all drafters share, as far as answers of both
        have not settled it. How well a new text can be drafted no answer of AR tells, though,
        where length and step cost are learned apart: only what is not yet known of AR itself.
        """
        if (self.group > 0.0) == (best.group > 0.0):
            return self.spread
        share = max(self.group, best.group) / max(self.decode, 1e-9)
        both = self.samples * best.samples / max(self.samples + best.samples, 1e-9)
        var = share * share / (1.0 + share * share * both / (_NOISE * _NOISE))
        return min(self.most, math.sqrt(self.spread**2 + var * self.decode**2))


class Pick(NamedTuple):
    """The chosen option, the probability it was chosen with, and its predicted loss in seconds."""

    arm: int
    propensity: float
    loss: float

    @property
    def explored(self) -> bool:
        """Whether it is not the one predicted to be the fastest."""
        return self.loss > 0.0


class Budget:
    """Seconds served and seconds spent on exploring, over a rolling window of requests."""

    def __init__(self, share: float, window: int) -> None:
        self._share = share
        self._rows: deque[tuple[float, float]] = deque(maxlen=window)
        self._served = 0.0
        self._spent = 0.0

    @property
    def share_spent(self) -> float:
        """Share of the window's seconds that went into exploring."""
        return self._spent / self._served if self._served > 0 else 0.0

    def affords(self, loss: float, served: float) -> bool:
        """Whether a request of `served` seconds may cost `loss` seconds more."""
        seen = len(self._rows)
        mean = (self._served + served) / (seen + 1)
        ahead = _ADVANCE * max(0.0, 1.0 - seen / _REPAID)
        return self._spent + loss <= self._share * (self._served + served + ahead * mean)

    def book(self, loss: float, served: float) -> None:
        """Enter one request."""
        if len(self._rows) == self._rows.maxlen:
            old_loss, old_served = self._rows[0]
            self._spent -= old_loss
            self._served -= old_served
        self._rows.append((loss, served))
        self._spent += loss
        self._served += served


class Explorer:
    """Chooses between the best option and those that might be better."""

    def __init__(self, settings: PolicySettings) -> None:
        self._set = settings
        share = _PRUDENCE * settings.exploration_budget
        self.budget = Budget(share, settings.exploration_window)

    def pick(self, options: Sequence[Option], best: int, draw: float, horizon: float) -> Pick:
        """One of `options`; `draw` is uniform in [0, 1). Deterministic in its arguments.

        `horizon` is the number of like requests that what is found may serve.
        """
        odds = self._odds(options, best, horizon)
        if not odds:
            return Pick(best, 1.0, 0.0)
        total = 1.0 + sum(weight for _, weight in odds)
        left = draw * total
        for index, weight in odds:
            left -= weight
            if left < 0.0:
                loss = options[index].total - options[best].total
                return Pick(index, weight / total, max(loss, 1e-12))
        return Pick(best, 1.0 / total, 0.0)

    def _odds(
        self, options: Sequence[Option], best: int, horizon: float
    ) -> list[tuple[int, float]]:
        """Per arm worth trying the odds that it beats the best one."""
        top = options[best]
        share = self._set.max_loss_share * top.total
        known = min(self._set.max_loss_s, share)
        out = []
        for index, option in enumerate(options):
            loss = option.total - top.total
            if index == best or option.spread <= 0.0:
                continue
            unknown = option.unknown(top)
            # What was never tried is judged by what it may well be, not by a guess of its mean.
            if (loss > known) if option.samples >= _KNOWN else (loss - unknown > share):
                continue
            if _worth(option, unknown, loss, horizon) and self.budget.affords(loss, option.total):
                z = loss / math.hypot(unknown, top.spread)
                below = 0.5 * math.erfc(z * _SQRT_HALF)
                out.append((index, below / (1.0 - below)))
        return out


def _worth(option: Option, unknown: float, loss: float, horizon: float) -> bool:
    """Whether trying gains more over the horizon than it costs.

    One answer seldom settles anything, so the price is that of as many answers as halve the
    variance of what is `unknown` (sd, seconds), and the gain what is then known.
    """
    noise = _NOISE * option.decode
    answers = max(1.0, (noise / unknown) ** 2)
    moves = unknown * _SQRT_HALF  # sd by which those answers move the estimate
    z = loss / moves
    if z > _HOPELESS:
        return False
    below = 0.5 * math.erfc(z * _SQRT_HALF)
    gain = moves * _INV_SQRT_2PI * math.exp(-0.5 * z * z) - loss * below
    return horizon * gain > answers * (loss + _TRIFLE * option.total)


class Traffic:
    """Which share of a model's requests is of which class, over the last few thousand."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, float]] = {}

    def count(self, model: str, name: str) -> float:
        """Enter one request; the share of its class, shrunk toward equal shares."""
        counts = self._counts.setdefault(model, {})
        counts[name] = counts.get(name, 0.0) + 1.0
        total = sum(counts.values())
        if total > _REMEMBERED:
            for other in counts:
                counts[other] *= 0.5
        return (counts[name] + 2.0) / (total + 2.0 * len(counts))
