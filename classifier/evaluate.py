"""Scores a predictor on labelled rows, or cross-validates the training by group.

Figures are of the request's first tokens (`label`): flags count, as they do when serving.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from classifier.classes import CLASSES
from classifier.features import extract
from classifier.metrics import Scored, accuracy, calibration_error, macro_f1, recall
from classifier.rules import settled, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from classifier.artifact import Predictor
    from classifier.dataset import LabelledRequest
    from classifier.estimator import Settings
    from classifier.features import RequestFeatures

FOLDS: Final = 5
FOLD_SEED: Final = 0


class TooFewGroups(ValueError):
    """The rows cannot be folded by group; says how many groups there are."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scored rows in the order of the data, and the microseconds each took (empty if not timed)."""

    rows: tuple[Scored, ...]
    micros: tuple[float, ...]


def evaluate(
    rows: Sequence[LabelledRequest], predictor: Predictor, timer: Callable[[], float]
) -> Evaluation:
    """Features and prediction of every row; `timer` gives seconds."""
    scored: list[Scored] = []
    micros: list[float] = []
    for row in rows:
        start = timer()
        answer = predictor.predict(extract(row.body))
        micros.append((timer() - start) * 1e6)
        scored.append(_scored(row, dict(answer.probabilities)))
    return Evaluation(tuple(scored), tuple(micros))


def cross_validate(
    rows: Sequence[LabelledRequest],
    extra: Sequence[LabelledRequest],
    settings: Settings,
    progress: Callable[[int, int], None],
) -> Evaluation:
    """Pooled out-of-fold scores of `rows`, folded by group; `extra` rows only ever train.

    `progress` is called with (folds done, folds).

    Raises:
        TooFewGroups: there are fewer groups than FOLDS.
    """
    if (there := len({row.group for row in rows})) < FOLDS:
        raise TooFewGroups(f"cross-validation needs rows of {FOLDS} groups, here are {there}")
    from sklearn.model_selection import GroupKFold

    from classifier.estimator import WorkloadEstimator, examples_of

    features = [extract(row.body) for row in rows]
    own = examples_of(extra)
    everything = examples_of(rows, features)
    results: list[Scored | None] = [None] * len(rows)
    splitter = GroupKFold(n_splits=FOLDS, shuffle=True, random_state=FOLD_SEED)
    splits = splitter.split(features, groups=[row.group for row in rows])
    for done, (train, test) in enumerate(splits, start=1):
        model = WorkloadEstimator(settings).fit_classes(
            everything.subset(train.tolist()).joined(own)
        )
        held_out = [features[i] for i in test]
        for i, probabilities in zip(test, _probabilities(model, held_out), strict=True):
            results[i] = _scored(rows[i], probabilities)
        progress(done, FOLDS)
    return Evaluation(tuple(row for row in results if row is not None), ())


def _probabilities(model: Any, features: Sequence[RequestFeatures]) -> Iterator[dict[str, float]]:
    for row, values in zip(features, model.predict_proba(features), strict=True):
        decided = settled(row)
        if decided is not None:
            yield spread(decided[0], decided[2])
        else:
            yield {c.value: float(value) for c, value in zip(CLASSES, values, strict=True)}


def _scored(row: LabelledRequest, probabilities: dict[str, float]) -> Scored:
    return Scored(row.label, probabilities, row.language, row.group, row.ambiguous)


def report(evaluation: Evaluation) -> dict[str, Any]:
    """The figures in the contract's shape, and `by_group` beside them."""
    rows = evaluation.rows
    clear = [row for row in rows if not row.ambiguous]
    return {
        "n": len(rows),
        "accuracy": accuracy(rows),
        "macro_f1": macro_f1(rows),
        "recall": recall(rows),
        "by_language": _by(rows, [row.language for row in rows]),
        "non_ambiguous": {"n": len(clear), "macro_f1": macro_f1(clear)},
        "ece": calibration_error(rows),
        "latency_us": {
            "p50": percentile(evaluation.micros, 0.50),
            "p99": percentile(evaluation.micros, 0.99),
        },
        "by_group": _by(rows, [row.group for row in rows]),
    }


def _by(rows: Sequence[Scored], keys: Sequence[str]) -> dict[str, dict[str, float]]:
    result = {}
    for key in sorted(set(keys)):
        part = [row for row, own in zip(rows, keys, strict=True) if own == key]
        result[key] = {"n": len(part), "macro_f1": macro_f1(part), "accuracy": accuracy(part)}
    return result


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value below which `share` of the values lie; None for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
