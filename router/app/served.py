"""The predictor that requests meet: the shipped model, or what traffic has taught since.

Swapping is two assignments between two requests; whoever predicts at that moment notices nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from classifier import Classification, Contribution, Predictor, RequestFeatures


class Served:
    """A `classifier.Predictor` whose model can be changed while it serves.

    `predict` and `explain` are the current model's own methods: the swap costs requests nothing.
    """

    predict: Callable[[RequestFeatures], Classification]
    explain: Callable[[RequestFeatures], tuple[Contribution, ...]]

    version: str

    def __init__(self, shipped: Predictor) -> None:
        self.shipped = shipped
        self.swap(None)

    def swap(self, learned: Predictor | None) -> None:
        """Serve this model from now on; None: the shipped one."""
        predictor = learned or self.shipped
        self.version = predictor.version
        self.predict, self.explain = predictor.predict, predictor.explain
