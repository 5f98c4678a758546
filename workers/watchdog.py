"""Whether a serving worker is wedged, judged by its progress; pure.

A slow worker is left alone: a long prompt shows progress or at least uses the processor. What shows
neither for long enough is wedged, even when its /health is fine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Sighting:
    """One look. `progress` changes whenever a busy slot gets on; `cpu` is seconds used so far."""

    at: float  # monotonic seconds
    answered: bool
    busy: bool = False
    progress: tuple[object, ...] = ()
    pending: int = 0  # prompt tokens that are still to be read
    cpu: float | None = None  # None: not known on this platform


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds, and the slowest prompt reading that is still work, in tokens per second."""

    frozen: float = 10.0  # without an answer and without processor time
    stuck: float = 60.0  # without a token, beside what its prompts may take
    prompt_speed: float = 10.0


@dataclass(frozen=True, slots=True)
class Watch:
    """When the worker was last seen to get on, and to be alive at all."""

    progressed_at: float
    alive_at: float
    last: Sighting

    @classmethod
    def begin(cls, now: float) -> Watch:
        """As if it had just made progress."""
        return cls(now, now, Sighting(now, answered=True))

    def seen(self, new: Sighting) -> Watch:
        """With one more look."""
        idle = new.answered and not new.busy
        moved = new.answered and new.progress != self.last.progress
        used = new.cpu is None or self.last.cpu is None or new.cpu > self.last.cpu
        kept = new if new.answered else replace(self.last, at=new.at, answered=False, cpu=new.cpu)
        return Watch(
            progressed_at=new.at if idle or moved else self.progressed_at,
            alive_at=new.at if new.answered or used else self.alive_at,
            last=kept,
        )

    def wedged(self, patience: Patience, context: int) -> str:
        """Why it is wedged, or nothing.

        Args:
            patience: how long to wait.
            context: tokens a prompt may have, for when it does not say how many are pending.
        """
        now = self.last.at
        if now - self.alive_at > patience.frozen:
            silent = now - self.alive_at
            return f"answered nothing and used no processor time for {silent:.0f} s"
        pending = self.last.pending if self.last.answered else context
        if now - self.progressed_at > patience.stuck + pending / patience.prompt_speed:
            return f"made no progress for {now - self.progressed_at:.0f} s"
        return ""
