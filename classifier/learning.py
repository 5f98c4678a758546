"""Learns from the answers that the user's own traffic produced, and promotes only what is better.

A request is kept as hashes of its feature names with the label of its answer, never as text. A
candidate is the served model plus a correction, fitted with a penalty on the correction and with
our own prompts rehearsed beside it, so that what traffic does not show is not forgotten. Runs in a
background process; counterpart: `classifier.produced`, which labels the answers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from classifier.artifact import LANES, Artifact, LinearPredictor, hash_name
from classifier.classes import CLASSES, WorkloadClass
from classifier.features import extract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from classifier.dataset import LabelledRequest
    from classifier.features import RequestFeatures
    from classifier.produced import ProducedLabel

    Array = np.ndarray[Any, np.dtype[np.float64]]

MAX_EXAMPLES: Final = 20_000
LEAST_CONFIDENCE: Final = 0.6
"""Answers whose produced label is less certain are not learned from."""

MIN_EXAMPLES: Final = 200
LATER_SHARE: Final = 0.3
"""The newest share of the traffic judges the candidate, the rest trains it."""

PENALTY: Final = 8.0
MIN_COUNT: Final = 3
REHEARSAL_WEIGHT: Final = 1.0

LEAST_GAIN: Final = 0.01
LEAST_Z: Final = 1.64
LEAST_LIFT: Final = 0.10
MOST_LOSS: Final = 0.01
"""Promotion: log loss on later traffic better by LEAST_GAIN nats and by LEAST_Z standard errors
(one-sided 5 %); mean recall at least LEAST_LIFT above guessing (labels that do not follow from the
requests, a poisoned stream, give none); mean recall on our own prompts, which both models have
seen, not lower by MOST_LOSS."""

KEPT_VERSIONS: Final = 3
_QUANTUM: Final = 127
_ZERO: Final = 128


@dataclass(frozen=True, slots=True)
class Example:
    """One answered request: hashes of its feature names, and the class that came out."""

    hashes: tuple[int, ...]
    answer: WorkloadClass


class TrafficLog:
    """A bounded log of examples, oldest first."""

    def __init__(self, cap: int = MAX_EXAMPLES) -> None:
        self._examples: deque[Example] = deque(maxlen=cap)

    def __len__(self) -> int:
        return len(self._examples)

    def add(self, features: RequestFeatures, label: ProducedLabel) -> bool:
        """Keeps the example unless the fields settled it or the label is uncertain."""
        settled = features.thinking or features.forced
        if settled or label.confidence < LEAST_CONFIDENCE:
            return False
        self._examples.append(Example(hashes_of(features), label.workload_class))
        return True

    def examples(self) -> list[Example]:
        """A copy, oldest first."""
        return list(self._examples)

    def dump(self) -> list[list[Any]]:
        """JSON values: [class, hash, hash, ...] per example."""
        return [[example.answer.value, *example.hashes] for example in self._examples]

    def restore(self, rows: Iterable[Sequence[Any]]) -> None:
        """Appends dumped examples; raises ValueError for an unknown class."""
        self._examples.extend(Example(tuple(row[1:]), WorkloadClass(row[0])) for row in rows)


def hashes_of(features: RequestFeatures) -> tuple[int, ...]:
    """The feature names as sorted 32-bit hashes."""
    return tuple(sorted(map(hash_name, features.names)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a candidate was promoted or not; losses in nats per request, recalls are means."""

    promoted: bool
    reason: str
    served_loss: float
    candidate_loss: float
    recall: float
    rehearsed_change: float


class Learner:
    """Fits candidates against a served artifact and judges them; keeps the last versions."""

    def __init__(self, served: Artifact, own: Sequence[LabelledRequest]) -> None:
        self.served = served
        self.previous: list[Artifact] = []
        self._own = [Example(hashes_of(extract(row.body)), row.answer) for row in own]

    def learn(self, traffic: Sequence[Example]) -> Verdict:
        """Fits on the older traffic, judges on the newer, and serves the winner."""
        if len(traffic) < MIN_EXAMPLES:
            return Verdict(False, f"{len(traffic)} answers, {MIN_EXAMPLES} needed", 0, 0, 0, 0)
        cut = int(len(traffic) * (1 - LATER_SHARE))
        candidate = fit(self.served, traffic[:cut], self._own)
        verdict = judge(self.served, candidate, traffic[cut:], self._own)
        if verdict.promoted:
            self.previous = [*self.previous, self.served][-KEPT_VERSIONS:]
            self.served = candidate
        return verdict

    def roll_back(self) -> bool:
        """Serves the version before; False if there is none."""
        if not self.previous:
            return False
        self.served = self.previous.pop()
        return True

    def predictor(self) -> LinearPredictor:
        """The predictor of what is served now."""
        return LinearPredictor(self.served)


def fit(served: Artifact, traffic: Sequence[Example], own: Sequence[Example]) -> Artifact:
    """The served model plus the correction that the traffic asks for."""
    examples = [*traffic, *own]
    weights = np.array([1.0] * len(traffic) + [REHEARSAL_WEIGHT] * len(own))
    columns = _columns(traffic)
    matrix = _matrix(examples, columns)
    offset = scores(served, examples)
    labels = np.array([CLASSES.index(example.answer) for example in examples])
    correction = _correction(matrix, offset, labels, weights)
    return _corrected(served, columns, correction[:-1], correction[-1])


def _columns(traffic: Sequence[Example]) -> list[int]:
    counts: dict[int, int] = {}
    for example in traffic:
        for hashed in example.hashes:
            counts[hashed] = counts.get(hashed, 0) + 1
    return sorted(hashed for hashed, count in counts.items() if count >= MIN_COUNT)


def _matrix(examples: Sequence[Example], columns: Sequence[int]) -> Any:
    index = {hashed: at for at, hashed in enumerate(columns)}
    rows = [[index[h] for h in example.hashes if h in index] for example in examples]
    starts = np.cumsum([0, *map(len, rows)])
    flat = [column for row in rows for column in row]
    return csr_matrix((np.ones(len(flat)), flat, starts), shape=(len(rows), len(columns)))


def _correction(matrix: Any, offset: Array, labels: Any, weights: Array) -> Array:
    """The penalised maximum-likelihood correction: features x classes, the bias as last row."""
    n_columns, n_classes = matrix.shape[1], len(CLASSES)
    onehot = np.eye(n_classes)[labels]

    def objective(flat: Array) -> tuple[float, Array]:
        table = flat.reshape(n_columns + 1, n_classes)
        logits = offset + matrix @ table[:-1] + table[-1]
        logits -= logits.max(axis=1, keepdims=True)
        chances = np.exp(logits)
        chances /= chances.sum(axis=1, keepdims=True)
        loss = -(weights * np.log(chances[np.arange(len(labels)), labels] + 1e-12)).sum()
        slope = (chances - onehot) * weights[:, None]
        gradient = np.vstack([matrix.T @ slope, slope.sum(axis=0)]) + PENALTY * table
        return loss + 0.5 * PENALTY * float((table**2).sum()), gradient.ravel()

    start = np.zeros((n_columns + 1) * n_classes)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 100})
    result: Array = found.x.reshape(n_columns + 1, n_classes)
    return result


def _class_table(artifact: Artifact) -> dict[int, Array]:
    """Class weights by hash of the name."""
    keys = [*map(hash_name, artifact.names), *artifact.hashed]
    raw = np.frombuffer(artifact.rows + artifact.hashed_rows, dtype=np.uint8)
    lanes = raw.reshape(-1, len(LANES))[:, : len(CLASSES)].astype(float) - _ZERO
    return dict(zip(keys, lanes * np.array(artifact.scales[: len(CLASSES)]), strict=True))


def scores(artifact: Artifact, examples: Sequence[Example]) -> Array:
    """Class log-odds of each example (examples x classes)."""
    table = _class_table(artifact)
    result = np.tile(np.array(artifact.biases[: len(CLASSES)]), (len(examples), 1))
    for at, example in enumerate(examples):
        for hashed in example.hashes:
            if (weights := table.get(hashed)) is not None:
                result[at] += weights
    return result


def _corrected(
    served: Artifact, columns: Sequence[int], correction: Array, bias: Array
) -> Artifact:
    """The artifact with class lanes corrected; names it does not know are added by hash."""
    n_classes, lanes = len(CLASSES), len(LANES)
    table = _class_table(served)
    for hashed, change in zip(columns, correction, strict=True):
        table[hashed] = table.get(hashed, np.zeros(n_classes)) + change
    named = [hash_name(name) for name in served.names]
    known = set(named)
    unnamed = [hashed for hashed in table if hashed not in known]
    class_weights = np.array([table[hashed] for hashed in (*named, *unnamed)])
    scales = np.abs(class_weights).max(axis=0) / _QUANTUM
    raw = np.full((len(named) + len(unnamed), lanes), _ZERO, dtype=np.uint8)
    old = np.frombuffer(served.rows + served.hashed_rows, dtype=np.uint8).reshape(-1, lanes)
    raw[: len(old)] = old  # kinds stay; hashed names of an earlier round come first in `unnamed`
    raw[:, :n_classes] = np.round(class_weights / scales) + _ZERO
    rows = raw.tobytes()
    at = len(named) * lanes
    biases = np.array(served.biases[:n_classes]) + bias
    version = blake2b(rows + biases.tobytes(), digest_size=4).hexdigest()
    return replace(
        served,
        version=f"learned-{version}",
        rows=rows[:at],
        hashed=tuple(unnamed),
        hashed_rows=rows[at:],
        scales=(*map(float, scales), *served.scales[n_classes:]),
        biases=(*map(float, biases), *served.biases[n_classes:]),
        card={**served.card, "learned_from": served.version},
    )


def judge(
    served: Artifact, candidate: Artifact, later: Sequence[Example], own: Sequence[Example]
) -> Verdict:
    """Whether the candidate may be served; see the constants for the conditions."""
    labels = np.array([CLASSES.index(example.answer) for example in later])
    old, new = scores(served, later), scores(candidate, later)
    gains = _losses(old, labels) - _losses(new, labels)
    error = float(gains.std(ddof=1)) / len(gains) ** 0.5
    gain, recall = float(gains.mean()), _mean_recall(new, labels)
    own_labels = np.array([CLASSES.index(example.answer) for example in own])
    change = _mean_recall(scores(candidate, own), own_labels) - _mean_recall(
        scores(served, own), own_labels
    )
    guessing = 1.0 / len(set(labels.tolist()))
    checks = {
        "no gain on later traffic": gain >= LEAST_GAIN and gain >= LEAST_Z * error,
        "labels do not follow from requests": recall >= guessing + LEAST_LIFT,
        "worse on our own prompts": change >= -MOST_LOSS,
    }
    failed = [reason for reason, passed in checks.items() if not passed]
    return Verdict(
        promoted=not failed,
        reason="; ".join(failed) or "better on later traffic",
        served_loss=float(_losses(old, labels).mean()),
        candidate_loss=float(_losses(new, labels).mean()),
        recall=recall,
        rehearsed_change=change,
    )


def _losses(logits: Array, labels: Any) -> Array:
    shifted = logits - logits.max(axis=1, keepdims=True)
    result: Array = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]
    return result


def _mean_recall(logits: Array, labels: Any) -> float:
    guesses = logits.argmax(axis=1)
    return float(
        np.mean([(guesses[labels == c] == c).mean() for c in sorted(set(labels.tolist()))])
    )


def drift(before: Mapping[str, float], now: Mapping[str, float]) -> float:
    """Population stability index of the class mix (shares by class value); 0 is no change, above
    0.2 is usually called a shift."""
    total = 0.0
    for c in CLASSES:
        old, new = max(before.get(c.value, 0.0), 1e-4), max(now.get(c.value, 0.0), 1e-4)
        total += (new - old) * float(np.log(new / old))
    return total
