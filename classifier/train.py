"""Fits the shipped model and writes it as an artifact with its card."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from classifier.artifact import LANES, Artifact, quantise
from classifier.classes import CLASSES
from classifier.estimator import Settings, WorkloadEstimator, examples_of, scale_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from classifier.dataset import LabelledRequest
    from classifier.features import RequestFeatures

SMALLEST_WEIGHT: Final = 0.03
"""A name whose weights are all below this (log-odds) is left out: it cannot decide anything."""


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """What is trained how; `figures` go into the card unchanged."""

    settings: Settings
    figures: Mapping[str, Any]


def train(rows: Sequence[LabelledRequest], config: TrainConfig) -> Artifact:
    """An artifact fitted on all `rows`."""
    examples = examples_of(rows)
    estimator = WorkloadEstimator(config.settings).fit(examples)
    return to_artifact(estimator, card(rows, config), examples.features)


def card(rows: Sequence[LabelledRequest], config: TrainConfig) -> dict[str, Any]:
    """How the model was made: rows by group and class, settings, measured figures."""
    groups: dict[str, int] = {}
    classes: dict[str, int] = {}
    for row in rows:
        groups[row.group] = groups.get(row.group, 0) + 1
        classes[row.answer.value] = classes.get(row.answer.value, 0) + 1
    return {
        "rows": len(rows),
        "by_group": dict(sorted(groups.items())),
        "by_class": dict(sorted(classes.items())),
        "settings": asdict(config.settings),
        "figures": dict(config.figures),
    }


def to_artifact(
    estimator: WorkloadEstimator,
    model_card: Mapping[str, Any],
    features: Sequence[RequestFeatures],
) -> Artifact:
    """The fitted estimator's weights with the scales of stems and the temperature folded in.

    `features` are the rows it was fitted on: what they knew of each name goes with it.
    """
    scales = np.array([scale_of(n, estimator.settings.stem_scale) for n in estimator.names_])
    temperature = estimator.temperature_
    weights = np.hstack(
        [
            estimator.class_weights_ / temperature,
            *(estimator.kind_weights_[c] for c in CLASSES),
        ]
    )
    weights *= scales[:, None]
    weights[np.abs(weights) < SMALLEST_WEIGHT / 2] = 0.0
    keep = np.abs(weights[:, : len(CLASSES)]).max(axis=1) >= SMALLEST_WEIGHT
    biases = np.concatenate(
        [
            estimator.class_bias_ / temperature,
            *(estimator.kind_bias_[c] for c in CLASSES),
        ]
    )
    information, bias_information = estimator.information(features)
    names = [name for name, kept in zip(estimator.names_, keep, strict=True) if kept]
    return quantise(
        estimator.names_,
        np.where(keep[:, None], weights, 0.0).tolist(),
        biases.tolist(),
        version=_version(names, weights[keep]),
        card=model_card,
        information=[*information.tolist(), bias_information],
    )


def _version(names: Sequence[str], weights: np.ndarray[Any, Any]) -> str:
    digest = blake2b("\n".join(names).encode(), digest_size=4)
    digest.update(np.round(weights, 4).tobytes())
    return f"linear-{len(LANES)}-{digest.hexdigest()}"
