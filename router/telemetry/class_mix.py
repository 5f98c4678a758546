"""How far the mix of classes has moved: what came lately against what came over a long time."""

from __future__ import annotations

from typing import Final

from classifier import CLASSES
from classifier.metrics import drift

RECENT: Final = 1 / 200
USUAL: Final = 1 / 5000
"""Weight of the newest request in the two mixes: about the last 200 requests against 5,000."""

LEAST: Final = 400
"""Requests before anything is said."""


class ClassMix:
    """Two exponentially decayed mixes of the same requests."""

    def __init__(self) -> None:
        self._seen = 0
        self._recent = dict.fromkeys((c.value for c in CLASSES), 0.0)
        self._usual = dict(self._recent)

    def add(self, name: str) -> None:
        """One request of class `name`."""
        self._seen += 1
        for mix, weight in ((self._recent, RECENT), (self._usual, USUAL)):
            weight = max(weight, 1.0 / self._seen)  # a plain mean until there is a past
            for key in mix:
                mix[key] += weight * ((key == name) - mix[key])

    @property
    def drift(self) -> float | None:
        """Population stability index (above 0.2: a shift); None before LEAST requests."""
        return drift(self._usual, self._recent) if self._seen >= LEAST else None
