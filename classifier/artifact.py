"""The serving-time predictor and the file it is read from; no scikit-learn, no numpy.

Placeholder of the trained model's format: until an artifact is shipped, `load` gives the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from classifier.rules import RuleClassifier

if TYPE_CHECKING:
    from pathlib import Path

    from classifier.classes import Classification, Contribution
    from classifier.features import RequestFeatures


class Predictor(Protocol):
    """Features in, classification out; synchronous and pure."""

    def predict(self, features: RequestFeatures) -> Classification: ...

    def explain(self, features: RequestFeatures) -> tuple[Contribution, ...]: ...


def load(path: Path | None = None) -> Predictor:
    """The predictor of the artifact at `path` (default: the shipped one)."""
    return RuleClassifier()
