"""Decode speed by worker and kind of text: the factor model, and a direct table where it must.

ln v = ln L - ln C + residual. L, the mean accepted length, belongs to the text and the drafter; C,
seconds per verification step, to the machine and its load. Where an engine reports no draft counts
the direct table of ln v serves. Counterpart: `router.policy.cost`, which turns v into seconds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from classifier.classes import WorkloadClass
from router.telemetry import priors
from router.telemetry.levels import (
    Arm,
    Text,
    direct_levels,
    length_levels,
    residual_levels,
    step_levels,
)
from router.telemetry.spreads import FACTOR_SPREAD, Spread
from router.telemetry.stats import EffectTable, Estimate, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from router.telemetry.stats import Cell, Moments
    from workers.timings import Timings

MIN_TOKENS: Final = 16
"""Answers shorter than this say nothing about speed."""

_LENGTH_NOISE: Final = 0.15  # answers of one kind differ in how well they can be drafted,
_STEP_NOISE: Final = 0.10  # a machine's steps differ little,
_RESIDUAL_NOISE: Final = 0.15  # and what neither explains in between

_CERTAIN: Final = Estimate(0.0, 0.0, 0.0, 0.0, 0.0)  # AR: one token a step, whatever the text

_USUAL_LENGTH: Final = math.log(2.6)
"""Of a drafter's step, until measured (2.0 to 4.1 on public setups). Were it lower than it turns
out to be, the machine would be thought slower than it is, and AR with it."""

ACCEPTED_LENGTH: Final = "accepted length"
STEP_COST: Final = "step cost"

_WELL_KNOWN: Final = 10.0  # weight of answers from which a deviation is news

_ENDLESS: Final = 50.0  # ln of a speed that no worker has, nor its inverse
_MAX_TEXTS: Final = 4096  # distinct texts remembered by number before all is forgotten
_HALF_WEIGHT_TOKENS: Final = 12.0  # an answer this long weighs half of a very long one


def weight_of(tokens: int) -> float:
    """What an answer of so many tokens counts, at most 1."""
    decoded = max(0, tokens - 1)
    return decoded / (decoded + _HALF_WEIGHT_TOKENS)


class Speed(NamedTuple):
    """Predicted ln(tokens per second). `contrast` is the variance that differs between arms,
    `group` what all drafters share."""

    ln_v: float
    contrast: float
    group: float
    variance: float
    weight: float


Cells = tuple["Cell", ...]

Forecast = tuple[float, float, float, float, float]
"""Seconds per token; variances of ln v: against other arms, shared by drafters, whole; samples."""


def _pace(ln_v: float) -> float:
    """Seconds per token, finite whatever was learned: nan counts as endlessly slow."""
    return math.exp(-max(-_ENDLESS, min(ln_v, _ENDLESS)))


class Forecasts:
    """Predictions for one arm by (text number, occupancy bucket), as the cost model wants them.

    The cells behind them are remembered, so that after something was learned a forecast is made
    anew from them without looking anything up.
    """

    __slots__ = ("_arm", "_cells", "_made", "_model", "_rough", "version")

    def __init__(self, model: SpeedModel, arm: Arm) -> None:
        self._model = model
        self._arm = arm
        self.version = -1
        self._made: dict[tuple[int, int], Forecast] = {}
        self._rough: dict[tuple[int, int], Forecast] = {}
        self._cells: dict[tuple[int, int], Cells] = {}

    def renew(self, version: int) -> None:
        """Forget what was forecast before `version` of the model."""
        self.version = version
        self._rough.update(self._made)
        self._made = {}
        if len(self._cells) > _MAX_TEXTS:
            self._cells.clear()
            self._rough.clear()

    def get(self, text: Text, number: int, bucket: int) -> Forecast:
        """The forecast for a text (and its number) in an occupancy bucket."""
        key = (number, bucket)
        found = self._made.get(key)
        if found is None:
            cells = self._cells.get(key)
            if cells is None:
                cells = self._cells[key] = self._model.cells(self._arm, text, bucket)
            speed = self._model.speed_of(cells)
            pace = _pace(speed.ln_v)
            found = (pace, speed.contrast, speed.group, speed.variance, speed.weight)
            self._made[key] = found
        return found

    def rough(self, text: Text, number: int, bucket: int) -> Forecast:
        """The forecast as it was when last asked for: good enough to leave a worker out."""
        found = self._rough.get((number, bucket))
        return found if found is not None else self.get(text, number, bucket)


class SpeedModel:
    """Predicts and learns ln v for (arm, text, occupancy bucket)."""

    def __init__(
        self,
        spread: Spread | None = None,
        shape: Shape | None = None,
        stated: priors.Stated | None = None,
    ) -> None:
        self._stated = stated if stated is not None else {}
        self.spread = spread if spread is not None else Spread()
        self.factor_spread = FACTOR_SPREAD
        base = shape if shape is not None else Shape()
        self.tables: Mapping[str, EffectTable] = {
            "v": EffectTable(base),
            "l": EffectTable(replace(base, noise_sd=_LENGTH_NOISE)),
            "c": EffectTable(replace(base, noise_sd=_STEP_NOISE)),
            "r": EffectTable(replace(base, noise_sd=_RESIDUAL_NOISE)),
        }
        self._factored: set[str] = set()  # models whose drafters report their drafts
        self._numbers: dict[Text, int] = {}
        self._siblings: dict[tuple[int, str], tuple[Text, int]] = {}
        self._forecasts: dict[tuple[str, str, str], Forecasts] = {}

    @property
    def version(self) -> int:
        """Changes with everything learned."""
        tables = self.tables
        return tables["v"].version + tables["l"].version + tables["c"].version + tables["r"].version

    def number(self, text: Text) -> int:
        """A small number that stands for a text in `Forecasts.get`."""
        found = self._numbers.get(text)
        if found is None:
            if len(self._numbers) >= _MAX_TEXTS:
                self._numbers.clear()
                self._siblings.clear()
                self._forecasts.clear()
            found = self._numbers[text] = len(self._numbers)
        return found

    def sibling(self, text: Text, number: int, workload_class: str) -> tuple[Text, int]:
        """The text, and its number, that is like `text` (of that number) but of another class."""
        found = self._siblings.get((number, workload_class))
        if found is None:
            other = Text(workload_class, "", *text[2:])
            found = other, self.number(other)
            if text in self._numbers:  # else all numbers have just been given anew
                self._siblings[number, workload_class] = found
        return found

    def forecasts(self, arm: tuple[str, str, str], version: int) -> Forecasts:
        """What is predicted of one arm, remembered until `version` (of this model) changes.

        `arm` may be a plain tuple of an Arm's fields: it is made on every decision.
        """
        found = self._forecasts.get(arm)
        if found is None:
            found = self._forecasts[arm] = Forecasts(self, Arm(*arm))
        if found.version != version:
            found.renew(version)
        return found

    def predict(self, arm: Arm, text: Text, occupancy: int) -> Speed:
        """The speed to expect; `occupancy` is a bucket."""
        return self.speed_of(self.cells(arm, text, occupancy))

    def cells(self, arm: Arm, text: Text, occupancy: int) -> Cells:
        """The leaves a prediction is made of: the direct one, or step, residual and length."""
        if arm.model not in self._factored:
            return (self.direct_cell(arm, text, occupancy),)
        step = self.step_cell(arm, text, occupancy)
        rest = self.residual_cell(arm, text, occupancy)
        return (step, rest, self.length_cell(arm, text)) if arm.drafts else (step, rest)

    def speed_of(self, cells: Cells) -> Speed:
        """The speed that those leaves predict."""
        if len(cells) == 1:
            return Speed(*self.tables["v"].estimate(cells[0]))
        step = self.tables["c"].estimate(cells[0])
        rest = self.tables["r"].estimate(cells[1])
        length = self.tables["l"].estimate(cells[2]) if len(cells) > 2 else _CERTAIN
        return Speed(
            length.mean - step.mean + rest.mean,
            length.contrast + step.contrast + rest.contrast,
            length.group + step.group,
            length.variance + step.variance + rest.variance,
            rest.weight,
        )

    def observe(self, arm: Arm, text: Text, occupancy: int, timings: Timings) -> bool:
        """Learn from one answer; True when the change detector raised."""
        v, n = timings.decode_tokens_per_second, timings.predicted_n
        if v is None or n is None or n - 1 < MIN_TOKENS:
            return False
        weight = weight_of(n)
        changed = self.learn(arm, text, occupancy, math.log(v), weight)
        if timings.draft_n_accepted is None and arm.drafts:
            return changed
        return self._learn_factors(arm, text, occupancy, timings, weight) or changed

    def residuals(self, arm: Arm, text: Text, occupancy: int, timings: Timings) -> dict[str, float]:
        """ln(observed / predicted) of accepted length and step cost, where they are well known."""
        length, speed = timings.mean_accepted_length, timings.decode_tokens_per_second
        if arm.model not in self._factored or length is None or speed is None:
            return {}
        if timings.predicted_n is None or timings.predicted_n <= MIN_TOKENS:
            return {}
        step = self.tables["c"].estimate(self.step_cell(arm, text, occupancy))
        found = {}
        if step.weight >= _WELL_KNOWN:
            found[STEP_COST] = math.log(length / speed) - step.mean
        if arm.drafts and timings.draft_n_accepted is not None:
            expected = self.tables["l"].estimate(self.length_cell(arm, text))
            if expected.weight >= _WELL_KNOWN:
                found[ACCEPTED_LENGTH] = math.log(length) - expected.mean
        return found

    def accepted(self, arm: Arm, text: Text, timings: Timings) -> float | None:
        """Mean accepted length over the usual one; None where either is not known."""
        length, tokens = timings.mean_accepted_length, timings.predicted_n or 0
        if not self.is_factored(arm) or length is None or timings.draft_n_accepted is None:
            return None
        usual = self.tables["l"].estimate(self.length_cell(arm, text))
        known = usual.weight >= _WELL_KNOWN and tokens > MIN_TOKENS
        return length / math.exp(usual.mean) if known else None

    def is_factored(self, arm: Arm) -> bool:
        """Whether its speed is accepted length over step cost, as its drafts are reported."""
        return arm.drafts and self.factors(arm.model)

    def factors(self, model: str) -> bool:
        """Whether a model's speeds are forecast from accepted length and step cost."""
        return model in self._factored

    def learn(self, arm: Arm, text: Text, occupancy: int, ln_v: float, weight: float) -> bool:
        """Learn one speed in the direct table."""
        return self.tables["v"].add(self.direct_cell(arm, text, occupancy), ln_v, weight)

    def _learn_factors(
        self, arm: Arm, text: Text, occupancy: int, timings: Timings, weight: float
    ) -> bool:
        length, speed = timings.mean_accepted_length, timings.decode_tokens_per_second
        if length is None or speed is None:
            return False
        ln_l, ln_v = math.log(length), math.log(speed)
        expected, changed = self._from_factors(arm, text, occupancy), False
        if arm.drafts:
            self.factor(arm.model)
            changed = self.tables["l"].add(self.length_cell(arm, text), ln_l, weight)
        step = self.step_cell(arm, text, occupancy)
        changed = self.tables["c"].add(step, ln_l - ln_v, weight) or changed
        if changed:  # what a factor has just taken in is not the residual's as well
            expected = self._from_factors(arm, text, occupancy)
        rest = self.residual_cell(arm, text, occupancy)
        return self.tables["r"].add(rest, ln_v - expected, weight) or changed

    def _from_factors(self, arm: Arm, text: Text, occupancy: int) -> float:
        """Predicted ln v without the residual."""
        step = self.tables["c"].estimate(self.step_cell(arm, text, occupancy)).mean
        if not arm.drafts:
            return -step
        return self.tables["l"].estimate(self.length_cell(arm, text)).mean - step

    def factor(self, model: str) -> None:
        """Predict a model's speeds from both factors from now on: its drafts are reported."""
        if model not in self._factored:
            self._factored.add(model)
            self._forecasts.clear()  # they were made of the direct table's leaves

    def measured(self) -> Iterator[tuple[Arm, Text, int, Moments]]:
        """Every measured cell of the direct table: arm, text, occupancy bucket, moments of ln v."""
        for cell in self.tables["v"].observed():
            arm, text, occupancy = cast("tuple[Arm, Text, int]", cell.key)
            yield arm, text, occupancy, cell.moments

    def direct_cell(self, arm: Arm, text: Text, occupancy: int) -> Cell:
        """The leaf of the direct table."""
        table, key = self.tables["v"], (arm, text, occupancy)
        found = table.find(key)
        if found is not None:
            return found
        ratio = self._prior(arm, text, occupancy)
        offset = math.log(priors.BASE_TOKENS_PER_SECOND * ratio)
        return table.cell(key, direct_levels(self.spread, arm, text, occupancy), offset)

    def _prior(self, arm: Arm, text: Text, occupancy: int) -> float:
        """Speed over AR's before anything is measured: stated, else from the table."""
        shared = priors.KEPT_BESIDE_AS_MANY**occupancy
        stated = priors.stated_speed(self._stated, arm.mode, text.workload_class)
        if stated is not None:
            return shared * stated
        return shared * priors.relative_speed(
            arm.mode, text.workload_class, text.context, occupancy, key=arm.key
        )

    def length_cell(self, arm: Arm, text: Text) -> Cell:
        """The leaf of ln(mean accepted length): text and drafter, not the machine's load."""
        table, key = self.tables["l"], (arm, text)
        found = table.find(key)
        if found is not None:
            return found
        return table.cell(
            key, length_levels(self.factor_spread, arm, text), self._prior_length(arm, text)
        )

    def _prior_length(self, arm: Arm, text: Text) -> float:
        """Of ln L: what is supposed of a class's speed beyond the others' is supposed of L."""
        beyond = math.log(self._prior(arm, text, 0)) - self._prior_of_any(arm, text, 0)
        return _USUAL_LENGTH + beyond

    def _prior_step(self, arm: Arm, text: Text, occupancy: int) -> float:
        """Of ln C, which no text's class may enter: the first to ask would decide for all."""
        length = _USUAL_LENGTH if arm.drafts else 0.0
        ratio = self._prior_of_any(arm, text, occupancy)
        return length - math.log(priors.BASE_TOKENS_PER_SECOND) - ratio

    def _prior_of_any(self, arm: Arm, text: Text, occupancy: int) -> float:
        """ln of the prior speed over AR's, mean of all classes."""
        return fmean(
            math.log(self._prior(arm, text._replace(workload_class=name.value), occupancy))
            for name in WorkloadClass
        )

    def step_cell(self, arm: Arm, text: Text, occupancy: int) -> Cell:
        """The leaf of ln(seconds per step): machine, load and context depth, not the text."""
        table, key = self.tables["c"], (arm, text.context, text.image, occupancy)
        found = table.find(key)
        if found is not None:
            return found
        offset = self._prior_step(arm, text, occupancy)
        return table.cell(key, step_levels(self.factor_spread, arm, text, occupancy), offset)

    def residual_cell(self, arm: Arm, text: Text, occupancy: int) -> Cell:
        """The leaf of what the factors leave unexplained, around 0."""
        table, key = self.tables["r"], (arm, text, occupancy)
        found = table.find(key)
        if found is not None:
            return found
        return table.cell(key, residual_levels(self.factor_spread, arm, text, occupancy), 0.0)
