"""llama-server's `timings` block as one value, with the contract's definitions on it.

Every field may be absent: unknown is None, never 0. The server counts the first generated token as
free, so speed and lengths are over predicted_n - 1 tokens (contract, section 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

_NUMBERS = (int, float)
MOST_TOKENS = 10_000_000
"""More than any context holds: a larger count is an error of whoever sent it."""
_LEAST_MS = 1e-3
_MOST_PER_MS = 1000.0  # tokens decoded in one; the fastest public setups make one or two


@dataclass(frozen=True, slots=True)
class Timings:
    """Tokens and milliseconds of one finished answer."""

    cache_n: int | None = None
    prompt_n: int | None = None
    prompt_ms: float | None = None
    predicted_n: int | None = None
    predicted_ms: float | None = None
    draft_n: int | None = None
    draft_n_accepted: int | None = None

    @property
    def acceptance_rate(self) -> float | None:
        """draft_n_accepted / draft_n; None when nothing was drafted or nothing is known."""
        if not self.draft_n or self.draft_n_accepted is None:
            return None
        return self.draft_n_accepted / self.draft_n

    @property
    def steps(self) -> int | None:
        """Verification steps: predicted_n - 1 - draft_n_accepted (no drafts: one step a token)."""
        if self.predicted_n is None or self.predicted_n < 2:
            return None
        return max(1, self.predicted_n - 1 - (self.draft_n_accepted or 0))

    @property
    def mean_accepted_length(self) -> float | None:
        """(predicted_n - 1) / steps, over all steps, drafted or not; tokens per step."""
        steps = self.steps
        if steps is None or self.predicted_n is None:
            return None
        return (self.predicted_n - 1) / steps

    @property
    def decode_tokens_per_second(self) -> float | None:
        """(predicted_n - 1) / predicted_ms in tokens per second."""
        if self.predicted_n is None or self.predicted_n < 2 or not self.predicted_ms:
            return None
        return 1000.0 * (self.predicted_n - 1) / self.predicted_ms

    @property
    def prompt_tokens(self) -> int | None:
        """The whole prompt: cached + evaluated tokens."""
        if self.prompt_n is None:
            return None
        return self.prompt_n + (self.cache_n or 0)

    def faster(self, times: float) -> Timings:
        """The same answer at `times` the speed."""
        prompt, predicted = self.prompt_ms, self.predicted_ms
        return replace(
            self,
            prompt_ms=None if prompt is None else prompt / times,
            predicted_ms=None if predicted is None else predicted / times,
        )

    @classmethod
    def from_payload(cls, timings: Mapping[str, Any] | None) -> Timings:
        """Read a `timings` object; what is missing, of a wrong type or cannot be becomes None."""
        if not isinstance(timings, Mapping):
            return cls()
        get = timings.get
        predicted_n = token_count(get("predicted_n"))
        predicted_ms = _milliseconds(get("predicted_ms"))
        if predicted_n and predicted_ms and predicted_n > _MOST_PER_MS * predicted_ms:
            predicted_ms = None
        drafted, accepted = token_count(get("draft_n")), token_count(get("draft_n_accepted"))
        if accepted is not None and accepted > (drafted or 0):
            drafted = accepted = None
        return cls(
            cache_n=token_count(get("cache_n")),
            prompt_n=token_count(get("prompt_n")),
            prompt_ms=_milliseconds(get("prompt_ms")),
            predicted_n=predicted_n,
            predicted_ms=predicted_ms,
            draft_n=drafted,
            draft_n_accepted=accepted,
        )


def token_count(value: Any) -> int | None:
    """A number of tokens, or None: a bool is no count, nor is what no model could make."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _milliseconds(value: Any) -> float | None:
    if type(value) not in _NUMBERS or not (value == 0 or _LEAST_MS <= value < 1e12):
        return None
    return float(value)
