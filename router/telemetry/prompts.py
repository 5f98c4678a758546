"""Prompts in numbers: tokens per character by model and script, and prompt speed by worker."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from router.telemetry.stats import EffectTable, Level, Shape, context_bucket

if TYPE_CHECKING:
    from router.telemetry.stats import Cell

MIN_PROMPT_TOKENS: Final = 16
"""Fewer evaluated tokens than this measure the overhead of a call, not the prompt speed."""

TOKENS_PER_CHAR: Final = {"en": 0.25, "ru": 0.40, "zh": 0.70, "other": 0.40}
"""Before measured: usual byte-pair vocabularies."""

TOKENS_PER_SECOND: Final = 400.0
"""Prompt speed of an unmeasured worker."""

_TEMPLATE_TOKENS: Final = 12.0  # what a chat template adds to a prompt of one turn


class PromptModel:
    """Learns both; every estimate is a plain number."""

    def __init__(self) -> None:
        self.ratios = EffectTable(Shape(noise_sd=0.15))
        self.speeds = EffectTable(Shape(noise_sd=0.3))
        self._paces: dict[tuple[str, int], float] = {}  # seconds per token, until learned anew
        self._version = -1
        self._ratios: dict[tuple[str, str], float] = {}  # tokens per character, likewise
        self._ratios_version = -1

    def tokens(self, model: str, language: str, chars: int) -> float:
        """Prompt tokens to expect from so many characters."""
        if self._ratios_version != self.ratios.version:
            self._ratios.clear()
            self._ratios_version = self.ratios.version
        key = (model, language)
        ratio = self._ratios.get(key)
        if ratio is None:
            ratio = math.exp(self.ratios.estimate(self.ratio_cell(model, language)).mean)
            self._ratios[key] = ratio
        return _TEMPLATE_TOKENS + chars * ratio

    def seconds(self, worker_key: str, tokens: float) -> float:
        """Seconds to evaluate so many uncached prompt tokens on that worker."""
        if tokens <= 0.0:
            return 0.0
        if self._version != self.speeds.version:
            self._paces.clear()
            self._version = self.speeds.version
        key = (worker_key, context_bucket(tokens))
        pace = self._paces.get(key)
        if pace is None:
            pace = math.exp(-self.speeds.estimate(self.speed_cell(*key)).mean)
            self._paces[key] = pace
        return tokens * pace

    def observe_tokens(self, model: str, language: str, chars: int, tokens: int) -> None:
        """Learn the ratio from one prompt."""
        if chars >= 32 and tokens > _TEMPLATE_TOKENS:
            y = math.log((tokens - _TEMPLATE_TOKENS) / chars)
            self.ratios.add(self.ratio_cell(model, language), y, chars / (chars + 400.0))

    def observe_speed(self, worker_key: str, tokens: int, milliseconds: float) -> None:
        """Learn the speed from one evaluation of `tokens` uncached tokens."""
        if tokens >= MIN_PROMPT_TOKENS and milliseconds > 0.0:
            y = math.log(1000.0 * tokens / milliseconds)
            cell = self.speed_cell(worker_key, context_bucket(tokens))
            self.speeds.add(cell, y, tokens / (tokens + 256.0))

    def ratio_cell(self, model: str, language: str) -> Cell:
        """The leaf of ln(tokens per character)."""
        key = (model, language)
        found = self.ratios.find(key)
        if found is not None:
            return found
        levels = (Level(("model", model), 0.3), Level(("script", *key), 0.3))
        offset = math.log(TOKENS_PER_CHAR.get(language, TOKENS_PER_CHAR["other"]))
        return self.ratios.cell(key, levels, offset)

    def speed_cell(self, worker_key: str, context: int) -> Cell:
        """The leaf of ln(prompt tokens per second)."""
        key = (worker_key, context)
        found = self.speeds.find(key)
        if found is not None:
            return found
        levels = (Level(("worker", worker_key), 1.5), Level(("context", *key), 0.4))
        return self.speeds.cell(key, levels, math.log(TOKENS_PER_SECOND))
