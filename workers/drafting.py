"""Whether a serving worker still drafts to any purpose, judged by its own counters; pure.

A drafter can stop without a word: the answers stay right and only their speed is plain decoding's.
Counterpart of the start probe in health.py, which sees only the first 64 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

WINDOW_TOKENS = 512  # generated, before they are judged: a few answers
ENOUGH_DRAFTED = 128  # tokens; fewer tell no rate
BAD_WINDOWS = 2  # in a row, before a worker is called degraded: one long odd text is no fault
RECOVERED = 1.5  # times the floor, before it is called well again: no to and fro at the floor


class Drafting(Enum):
    """What a window of answers shows."""

    WELL = "well"
    VANISHED = "vanished"  # nothing was drafted
    IN_VAIN = "in vain"  # nearly nothing of it was accepted


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens since the process began, as llama-server's /metrics counts them."""

    predicted: int
    drafted: int
    accepted: int

    def since(self, before: Counts) -> Counts:
        """The difference."""
        return Counts(
            self.predicted - before.predicted,
            self.drafted - before.drafted,
            self.accepted - before.accepted,
        )

    @property
    def acceptance(self) -> float | None:
        """Share of the drafted; None where too few were drafted to tell."""
        return self.accepted / self.drafted if self.drafted >= ENOUGH_DRAFTED else None


@dataclass(frozen=True, slots=True)
class DraftWatch:
    """Windows of generated tokens, one after the other. `last` is the latest that was judged."""

    floor: float
    begun: Counts | None = None
    last: Counts | None = None
    finding: Drafting = Drafting.WELL
    bad: int = 0  # windows in a row with a finding that is not WELL

    def seen(self, counts: Counts | None) -> DraftWatch:
        """With one more look; None is a look that told nothing."""
        if counts is None:
            return self
        if self.begun is None or counts.predicted < self.begun.predicted:
            return replace(self, begun=counts)
        window = counts.since(self.begun)
        if window.predicted < WINDOW_TOKENS:
            return self
        found = self._judge(window)
        bad = 0 if found is Drafting.WELL else self.bad + 1
        return replace(self, begun=counts, last=window, finding=found, bad=bad)

    @property
    def degraded(self) -> Drafting | None:
        """The fault, once it has shown in enough windows."""
        return self.finding if self.bad >= BAD_WINDOWS else None

    @property
    def reason(self) -> str:
        """The fault as a sentence's end."""
        window = self.last
        if window is None or self.finding is Drafting.WELL:
            return ""
        if self.finding is Drafting.VANISHED:
            return f"nothing drafted in the last {window.predicted} tokens"
        share = f"{window.accepted} of {window.drafted} drafted tokens accepted"
        return f"{share} in service (floor {self.floor:.0%})"

    def recovers(self) -> bool:
        """Whether the latest window is clearly well: drafted, and clearly above the floor."""
        if self.last is None or self.finding is not Drafting.WELL:
            return False
        rate = self.last.acceptance
        return rate is not None and rate >= RECOVERED * self.floor

    def _judge(self, window: Counts) -> Drafting:
        if window.drafted == 0:
            return Drafting.VANISHED
        rate = window.acceptance
        return Drafting.IN_VAIN if rate is not None and rate < self.floor else Drafting.WELL
