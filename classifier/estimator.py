"""The scikit-learn estimator: feature names to calibrated class and kind weights.

A multinomial logistic regression for the class and one per class for its kinds, on the presence of
feature names. Stems are scaled down, which regularises them harder than concepts: a word belongs
to a source more often than a concept does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from classifier.classes import CLASSES, KINDS, WorkloadClass
from classifier.features import extract, is_stem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from classifier.dataset import LabelledRequest
    from classifier.features import RequestFeatures

    Array = np.ndarray[Any, np.dtype[np.float64]]

_CONTEXT: Final = ("s:", "p:", "t:")
_DECISIVE: Final = frozenset(
    {"STEP>STEP", "THINK>STEP", "x:choice", "x:formula", "n:problem", "t:answered"}
)
DECISIVE_SCALE: Final = 1.7
CONTEXT_SCALE: Final = 1.3
"""Rare in the data, but when present they say more than the words around them."""

TEMPERATURE_TRUST: Final = 0.5
"""How far the inner folds' temperature is followed: their models have seen fewer sources than the
one they calibrate, and are wrong more often than it will be."""

SURER: Final = 0.75
"""What the served model is surer than the folds say: requests typed by people, of sources that no
fold has, were answered with 0.78 to 0.84 confidence and 0.85 to 0.95 right (three sets of our own
under tests/data; log loss is least at 0.5 to 0.7 there, at 1.0 in the folds)."""

_TOLERANCE: Final = 3e-3


@dataclass(frozen=True, slots=True)
class Settings:
    """Training settings: inverse regularisation, rarest feature kept, weight of stems, how much
    large groups are held back (0 not at all, 1 every group counts the same), weight of rows
    flagged ambiguous, inner folds for the temperature (0: none), groups that the inner folds
    never hold out (our own prompts: no model is served without them)."""

    inverse_penalty: float = 0.3
    min_count: int = 3
    stem_scale: float = 0.5
    group_power: float = 0.0
    ambiguous_weight: float = 1.0
    inner_folds: int = 6
    always_train: tuple[str, ...] = ("authored",)


@dataclass(frozen=True, slots=True)
class Examples:
    """Training rows as columns; all sequences have one entry per row."""

    features: Sequence[RequestFeatures]
    answers: Sequence[WorkloadClass]
    kinds: Sequence[str]
    groups: Sequence[str]
    ambiguous: Sequence[bool]

    def subset(self, index: Sequence[int]) -> Examples:
        """The rows at `index`."""
        return Examples(
            [self.features[i] for i in index],
            [self.answers[i] for i in index],
            [self.kinds[i] for i in index],
            [self.groups[i] for i in index],
            [self.ambiguous[i] for i in index],
        )

    def joined(self, other: Examples) -> Examples:
        """These rows, then the other's."""
        return Examples(
            [*self.features, *other.features],
            [*self.answers, *other.answers],
            [*self.kinds, *other.kinds],
            [*self.groups, *other.groups],
            [*self.ambiguous, *other.ambiguous],
        )


def examples_of(
    rows: Sequence[LabelledRequest], features: Sequence[RequestFeatures] | None = None
) -> Examples:
    """Labelled rows as columns; `features` if they are already extracted."""
    return Examples(
        features if features is not None else [extract(row.body) for row in rows],
        [row.answer for row in rows],
        [row.kind for row in rows],
        [row.group for row in rows],
        [row.ambiguous for row in rows],
    )


def scale_of(name: str, stem_scale: float) -> float:
    """The value a present feature has in training: below 1 it is regularised harder, above less."""
    if is_stem(name):
        return stem_scale
    if name in _DECISIVE or "only:" in name or "no:" in name:
        return DECISIVE_SCALE
    return CONTEXT_SCALE if name.startswith(_CONTEXT) else 1.0


class WorkloadEstimator:
    """Learned attributes end in an underscore: `names_`, `class_weights_` (names x classes),
    `class_bias_`, `kind_weights_` and `kind_bias_` by class, `temperature_`."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()

    def fit(self, examples: Examples) -> Self:
        """Learns classes and kinds; the temperature comes from inner folds by group."""
        self.fit_classes(examples)
        self.kind_weights_: dict[WorkloadClass, Array] = {}
        self.kind_bias_: dict[WorkloadClass, Array] = {}
        matrix = self._matrix(examples.features)
        weights = self._row_weights(examples)
        for workload_class in CLASSES:
            self._fit_kinds(workload_class, examples, matrix, weights)
        return self

    def fit_classes(self, examples: Examples) -> Self:
        """Learns the classes only: half the time, enough for figures about classes."""
        self._fit_weights(examples)
        self.temperature_ = self._temperature(examples)
        return self

    def _fit_weights(self, examples: Examples) -> None:
        self.names_ = self._vocabulary(examples)
        matrix = self._matrix(examples.features)
        weights = self._row_weights(examples)
        labels = np.array([CLASSES.index(answer) for answer in examples.answers])
        self.class_weights_, self.class_bias_ = _fit(
            matrix, labels, weights, len(CLASSES), self.settings.inverse_penalty
        )

    def _fit_kinds(
        self, workload_class: WorkloadClass, examples: Examples, matrix: Any, weights: Array
    ) -> None:
        kinds = KINDS[workload_class]
        rows = np.array([i for i, kind in enumerate(examples.kinds) if kind in kinds], dtype=int)
        labels = np.array([kinds.index(examples.kinds[i]) for i in rows], dtype=int)
        self.kind_weights_[workload_class], self.kind_bias_[workload_class] = _fit(
            matrix[rows], labels, weights[rows], len(kinds), self.settings.inverse_penalty
        )

    def decision(self, features: Sequence[RequestFeatures]) -> Array:
        """Class log-odds (rows x classes), before the temperature."""
        scores: Array = self._matrix(features) @ self.class_weights_ + self.class_bias_
        return scores

    def predict_proba(self, features: Sequence[RequestFeatures]) -> Array:
        """Calibrated class probabilities (rows x classes), flags not considered."""
        return softmax(self.decision(features) / self.temperature_)

    def information(self, features: Sequence[RequestFeatures]) -> tuple[Array, float]:
        """How much the rows know of each name's weight and of the biases: their sums of p(1-p),
        the mean over the classes (Fisher information of weights on presence)."""
        chances = self.predict_proba(features)
        doubt = (chances * (1.0 - chances)).mean(axis=1)
        present = self._matrix(features)
        present.data = np.ones_like(present.data)
        return np.asarray(present.T @ doubt), float(doubt.sum())

    def _vocabulary(self, examples: Examples) -> list[str]:
        counts = Counter(name for row in examples.features for name in row.names)
        return sorted(n for n, count in counts.items() if count >= self.settings.min_count and n)

    def _matrix(self, features: Sequence[RequestFeatures]) -> Any:
        index = {name: column for column, name in enumerate(self.names_)}
        scales = [scale_of(name, self.settings.stem_scale) for name in self.names_]
        rows = [[index[n] for n in sorted(row.names) if n in index] for row in features]
        columns = [column for row in rows for column in row]
        starts = np.cumsum([0, *map(len, rows)])
        values = np.array([scales[column] for column in columns])
        return csr_matrix((values, columns, starts), shape=(len(rows), len(self.names_)))

    def _row_weights(self, examples: Examples) -> Array:
        counts = Counter(examples.groups)
        power = self.settings.group_power
        raw = np.array([counts[group] ** -power for group in examples.groups])
        raw *= np.where(examples.ambiguous, self.settings.ambiguous_weight, 1.0)
        result: Array = raw * (len(raw) / raw.sum())
        return result

    def _temperature(self, examples: Examples) -> float:
        always = set(self.settings.always_train)
        own = [i for i, group in enumerate(examples.groups) if group in always]
        tested = [i for i, group in enumerate(examples.groups) if group not in always]
        outer = examples.subset(tested)
        folds = min(self.settings.inner_folds, len(set(outer.groups)))
        if folds < 2:
            return 1.0
        scores = np.zeros((len(tested), len(CLASSES)))
        splitter = GroupKFold(n_splits=folds, shuffle=True, random_state=1)
        for train, test in splitter.split(scores, groups=outer.groups):
            inner = WorkloadEstimator(self.settings)
            inner._fit_weights(outer.subset(train.tolist()).joined(examples.subset(own)))
            scores[test] = inner.decision([outer.features[i] for i in test])
        labels = np.array([CLASSES.index(answer) for answer in outer.answers])
        found = best_temperature(scores, labels, self._row_weights(outer))
        return SURER * (1.0 + TEMPERATURE_TRUST * (found - 1.0))


def _fit(
    matrix: Any, labels: Any, weights: Array, n_labels: int, inverse_penalty: float
) -> tuple[Array, Array]:
    """Weights (features x labels) and biases; labels absent from the data get a low bias."""
    result = np.zeros((matrix.shape[1], n_labels))
    bias = np.full(n_labels, -8.0)
    present = sorted(set(labels.tolist()))
    if len(present) < 2:
        bias[present] = 0.0
        return result, bias
    model = LogisticRegression(C=inverse_penalty, max_iter=200, tol=_TOLERANCE)
    model.fit(matrix, labels, sample_weight=weights)
    coefficients, intercepts = model.coef_, model.intercept_
    if len(present) == 2:  # scikit-learn keeps one row for two labels
        coefficients = np.vstack([-coefficients / 2, coefficients / 2])
        intercepts = np.array([-intercepts[0] / 2, intercepts[0] / 2])
    result[:, present] = coefficients.T
    bias[present] = intercepts
    return result, bias


def softmax(scores: Array) -> Array:
    """Row-wise softmax."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    result: Array = shifted / shifted.sum(axis=1, keepdims=True)
    return result


def best_temperature(scores: Array, labels: Any, weights: Array) -> float:
    """The divisor of the scores with the least weighted log loss, on a fixed grid 0.5..3."""
    grid = np.exp(np.linspace(np.log(0.5), np.log(3.0), 60))
    rows = np.arange(len(labels))
    losses = [-(weights * np.log(softmax(scores / t)[rows, labels] + 1e-12)).sum() for t in grid]
    return float(grid[int(np.argmin(losses))])
