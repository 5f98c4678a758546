"""What the zeros are that make the costs of the trio like a real pair's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The zeros that a target gets: they change no output, only what a step costs.

    Attributes:
        layers: layers added after the trunk, 0 or more.
        feed_forward: hidden units of every layer's feed-forward network, those of zeros among
            them; at most the trained number: none are added.
    """

    layers: int
    feed_forward: int

    def __post_init__(self) -> None:
        if self.layers < 0:
            raise ValueError(f"cost layers must not be negative, got {self.layers}")


# Measured (MODEL_CARD.md). The layers make a step of the target cost more than one of a drafter, as
# on a real pair. The width makes it spend its time on reading weights, as a real device does, so
# that a second token in a step (a draft, or another request's) costs little; narrow layers spend
# theirs on each token.
COST = Cost(layers=8, feed_forward=1024)
# No zeros, so quick steps: for tests that do not look at speed.
NO_COST = Cost(layers=0, feed_forward=0)
