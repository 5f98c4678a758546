"""Everything the gateway has learned, behind one face: predict for the policy, observe outcomes.

Its state is moments by (table, key): see `router.telemetry.store` for how gateways share them.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import orjson

from router.core.decision import Reason
from router.core.outcome import Status
from router.telemetry.collapse import Collapse, CollapseDetector, Sight
from router.telemetry.lengths import LengthKey, LengthModel
from router.telemetry.levels import Arm, Text
from router.telemetry.prompts import PromptModel
from router.telemetry.speeds import MIN_TOKENS, SpeedModel, weight_of
from router.telemetry.stats import context_bucket, occupancy_bucket
from router.telemetry.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from classifier import Classification
    from router.core import Outcome
    from router.telemetry.priors import Stated
    from router.telemetry.stats import Cell, EffectTable, Moments
    from router.telemetry.store.base import CellName

EPOCH_S: Final = 300.0
"""Length of an epoch of learned state, seconds of wall time."""

HALF_LIFE_S: Final = 1800.0
"""Time of traffic after which an observation counts half."""


_FIRST_SETTLED: Final = 4  # answers; then after 8, 16, 32 and so on


class Alarm(NamedTuple):
    """The change detector raised: what changed, and when (Unix seconds)."""

    model: str
    worker_key: str
    workload_class: str
    wall_time: float


class Knowledge:
    """Speeds, lengths and prompts; one per gateway, one writer (the event loop)."""

    def __init__(self, *, half_life_s: float = HALF_LIFE_S, stated: Stated | None = None) -> None:
        self.speeds = SpeedModel(stated=stated)
        self.lengths = LengthModel()
        self.prompts = PromptModel()
        self.surroundings = Surroundings()
        self.alarms: list[Alarm] = []
        self.collapses: deque[Collapse] = deque(maxlen=256)  # newest last, for alerts
        self._detector = CollapseDetector()
        self.fade = 0.5 ** (EPOCH_S / half_life_s)  # of an epoch, per later epoch with traffic
        self._epoch: int | None = None
        self._seen = 0

    @property
    def tables(self) -> Mapping[str, EffectTable]:
        """Every table by the name it is stored under."""
        return {
            **self.speeds.tables,
            "n": self.lengths.table,
            "k": self.prompts.ratios,
            "p": self.prompts.speeds,
            "b": self.surroundings.table,
        }

    def cell_named(self, name: CellName) -> Cell | None:
        """The cell that another gateway called so; None for a name of another version."""
        try:
            return self._make_cell(name.table, orjson.loads(name.key))
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
            return None

    def _make_cell(self, table: str, parts: list[Any]) -> Cell:
        if table == "v":
            return self.speeds.direct_cell(Arm(*parts[0]), Text(*parts[1]), int(parts[2]))
        if table == "r":
            return self.speeds.residual_cell(Arm(*parts[0]), Text(*parts[1]), int(parts[2]))
        if table == "l":
            return self.speeds.length_cell(Arm(*parts[0]), Text(*parts[1]))
        if table == "c":
            arm, context, image, occupancy = parts
            text = Text("", context=int(context), image=bool(image))
            return self.speeds.step_cell(Arm(*arm), text, int(occupancy))
        if table == "n":
            return self.lengths.cell(LengthKey(*parts))
        if table == "k":
            return self.prompts.ratio_cell(*parts)
        if table == "p":
            return self.prompts.speed_cell(str(parts[0]), int(parts[1]))
        if table == "b":
            return self.surroundings.cell(str(parts[0]), str(parts[1]), int(parts[2]))
        raise KeyError(table)

    def adopt(self, cells: Mapping[CellName, Moments], moved: Mapping[CellName, float]) -> None:
        """Take the merged state of all gateways in place of the own one.

        `moved` is where changes took the expectation of the cells that ever changed.
        """
        tables = self.tables
        for name, moments in cells.items():
            cell = self.cell_named(name)
            if cell is not None:
                if name in moved:
                    tables[name.table].move(cell, moved[name])
                tables[name.table].put(cell, moments)
                if name.table == "l":
                    self.speeds.factor(cast("tuple[Arm, Text]", cell.key)[0].model)
        self.settle()

    def prompt_tokens(self, model: str, language: str, chars: int) -> float:
        """Estimated prompt tokens of a request (PolicyInput.prompt_tokens)."""
        return self.prompts.tokens(model, language, chars)

    def observe(self, outcome: Outcome) -> None:
        """Learn from one finished request; odd values are ignored, never raised."""
        what = outcome.classification
        if outcome.status not in (Status.OK, Status.CLIENT_GONE) or what is None:
            return
        if outcome.decision is not None and outcome.decision.reason is Reason.FALLBACK:
            return  # another model elsewhere: its lengths and speeds are not ours
        self.tick(outcome.wall_time)
        outcome = self._as_alone(outcome)
        self._observe_prompt(outcome, what)
        self._observe_speed(outcome, what)
        if outcome.status is Status.OK:
            self._observe_length(outcome, what)
        self._seen += 1
        if self._seen >= _FIRST_SETTLED and self._seen & (self._seen - 1) == 0:
            self.settle()
        elif self._seen & 63 == 0:
            self._relax()

    def accepted(self, outcome: Outcome) -> float | None:
        """An answer's mean accepted length over the usual one of its text and drafter.

        None where nothing was drafted, the answer is short, or nothing is known of such texts.
        """
        what = outcome.classification
        if what is None:
            return None
        arm = Arm(outcome.model, outcome.worker_key, outcome.mode)
        text = text_of(what, outcome.context_tokens or 0, outcome.has_image)
        return self.speeds.accepted(arm, text, outcome.timings)

    def tick(self, wall_time: float) -> None:
        """Fade what is known when a new epoch with traffic begins."""
        epoch = int(wall_time // EPOCH_S)
        if self._epoch is not None and epoch > self._epoch:
            for table in self.tables.values():
                table.decay(self.fade)
        self._epoch = epoch if self._epoch is None else max(epoch, self._epoch)

    def settle(self) -> None:
        """Settle every table: once a second, and more often while little is known."""
        for table in self.tables.values():
            table.settle()

    def _relax(self) -> None:
        """Like `settle`, a little at a time: cheap enough where an answer ends."""
        for table in self.tables.values():
            table.sweep()

    def _as_alone(self, outcome: Outcome) -> Outcome:
        """The outcome as it would have been on an otherwise idle host; learns the difference."""
        company = outcome.beside + max(0.0, (outcome.batch or outcome.occupancy) - 1.0)
        self.surroundings.met(outcome.host, company)
        if not outcome.beside:
            return outcome
        host, model = outcome.host, outcome.model
        off = self._off(outcome)
        if off is not None:
            n = outcome.timings.predicted_n or 0
            self.surroundings.observe(
                host, model, outcome.beside, off=off[0], unsure=off[1], weight=weight_of(n)
            )
        slower = self.surroundings.slowing(host, model, outcome.beside).times
        return replace(outcome, timings=outcome.timings.faster(slower))

    def _off(self, outcome: Outcome) -> tuple[float, float] | None:
        """ln of the answer's speed over that expected of an idle host, and how unsure that is."""
        v, n = outcome.timings.decode_tokens_per_second, outcome.timings.predicted_n
        if v is None or n is None or n <= MIN_TOKENS or outcome.classification is None:
            return None
        arm = Arm(outcome.model, outcome.worker_key, outcome.mode)
        text = text_of(outcome.classification, outcome.context_tokens or 0, outcome.has_image)
        expected = self.speeds.predict(arm, text, _bucket(outcome))
        return math.log(v) - expected.ln_v, expected.variance

    def _observe_prompt(self, outcome: Outcome, what: Classification) -> None:
        timings = outcome.timings
        tokens = timings.prompt_tokens if timings.prompt_n is not None else outcome.prompt_tokens
        if tokens and not outcome.has_image:
            self.prompts.observe_tokens(outcome.model, what.language, outcome.prompt_chars, tokens)
        if timings.prompt_n and timings.prompt_ms:
            key = outcome.worker_key.partition("~")[0]  # all arms of a worker prefill alike
            self.prompts.observe_speed(key, timings.prompt_n, timings.prompt_ms)

    def _observe_speed(self, outcome: Outcome, what: Classification) -> None:
        arm = Arm(outcome.model, outcome.worker_key, outcome.mode)
        text = text_of(what, outcome.context_tokens or 0, outcome.has_image)
        bucket = _bucket(outcome)
        residuals = self.speeds.residuals(arm, text, bucket, outcome.timings)
        changed = self.speeds.observe(arm, text, bucket, outcome.timings)
        if residuals:
            properties = _properties(outcome, text, bucket)
            sight = Sight(arm.model, outcome.wall_time, properties, residuals)
            self.collapses.extend(self._detector.observe(sight, alarmed=changed))
        if changed:
            name = text.workload_class
            self.alarms.append(Alarm(arm.model, arm.key, name, outcome.wall_time))
            del self.alarms[:-256]

    def _observe_length(self, outcome: Outcome, what: Classification) -> None:
        tokens = outcome.completion_tokens or outcome.timings.predicted_n
        if tokens:
            key = length_key(outcome.model, what, outcome.fingerprint)
            self.lengths.observe(key, what.expected_output_tokens, tokens, cut=outcome.is_cut)


def _bucket(outcome: Outcome) -> int:
    """Of how many shared the worker while it answered: most may have come after it began."""
    return occupancy_bucket(round(outcome.batch) or outcome.occupancy)


def _properties(outcome: Outcome, text: Text, bucket: int) -> dict[str, str]:
    """What a change of drafting may have to do with."""
    return {
        "class": text.workload_class,
        "kind": text.kind,
        "language": text.language,
        "thinking": str(text.thinking),
        "context bucket": str(text.context),
        "occupancy bucket": str(bucket),
        "image": str(text.image),
        "grammar": str(outcome.has_grammar),
        "worker": outcome.worker,
        "mode": outcome.mode,
    }


def text_of(what: Classification, context_tokens: float, has_image: bool) -> Text:
    """The classifier's answer as the speed tables key it."""
    return Text(
        str(what.workload_class),
        what.kind,
        what.thinking,
        what.language,
        context_bucket(context_tokens),
        has_image,
    )


def length_key(model: str, what: Classification, fingerprint: str) -> LengthKey:
    """The classifier's answer as the length table keys it."""
    return LengthKey(model, str(what.workload_class), what.kind, what.thinking, fingerprint)
