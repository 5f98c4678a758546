"""How long an answer will be: a log-normal per kind, moved by what the request shows.

The medians are priors (typical lengths of current instruction-tuned models' answers, by kind, from
our own writing of such answers); the policy replaces them by what it measures and applies
`max_tokens` itself.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from classifier.features import RequestFeatures

MEDIAN_TOKENS: Final[dict[str, float]] = {
    "code": 350,
    "json": 140,
    "list": 150,
    "table": 220,
    "extraction": 30,
    "count": 40,
    "tool_call": 45,
    "rewrite": 300,
    "chat": 120,
    "essay": 420,
    "story": 550,
    "translation": 80,
    "summary": 150,
    "long_document": 900,
    "qa": 230,
    "roleplay": 300,
    "math": 380,
    "logic": 350,
    "planning": 600,
}
"""Median answer tokens by kind, thinking excluded."""

SPREAD: Final[dict[str, float]] = {"code": 0.9, "json": 0.9, "extraction": 1.0, "count": 1.0}
DEFAULT_SPREAD: Final = 0.75
"""Standard deviation of the logarithm."""

THINKING_TOKENS: Final = 900.0
THINKING_SPREAD: Final = 1.0
"""Median tokens produced before the answer when thinking is on."""

CHARS_PER_TOKEN: Final[dict[str, float]] = {"en": 4.0, "ru": 3.0, "zh": 1.5, "other": 3.3}
TOKENS_PER_WORD: Final[dict[str, float]] = {"en": 1.35, "ru": 2.2, "zh": 0.8, "other": 1.8}
"""For lengths that the request names (in Chinese: per character)."""

COPYING: Final[frozenset[str]] = frozenset({"translation", "rewrite"})
"""Kinds whose answer is about as long as the user's turn."""

BRIEF_FACTOR: Final = 0.5
DETAIL_FACTOR: Final = 1.6
Z80: Final = 1.2816
"""Normal quantile of an 80 % interval."""


def expected_tokens(
    features: RequestFeatures, kind: str, thinking: bool
) -> tuple[float, tuple[float, float]]:
    """Median output tokens of `kind` for this request and the 80 % interval around it."""
    median = MEDIAN_TOKENS[kind]
    if kind in COPYING and features.user_chars > 0:
        median = max(12.0, features.user_chars / CHARS_PER_TOKEN[features.language])
    if "c:BRIEF" in features.names:
        median *= BRIEF_FACTOR
    if "c:DETAIL" in features.names:
        median *= DETAIL_FACTOR
    if features.asked_words:
        median = features.asked_words * TOKENS_PER_WORD[features.language]
    spread = SPREAD.get(kind, DEFAULT_SPREAD)
    if thinking:
        median += THINKING_TOKENS
        spread = THINKING_SPREAD
    reach = exp(Z80 * spread)
    return median, (median / reach, median * reach)
