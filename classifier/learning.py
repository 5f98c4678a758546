"""Learns from the answers that the user's own traffic produced, and promotes only what is better.

A candidate is the served model plus a correction of its class weights, fitted to the traffic. What
holds the correction back is what the training rows knew of each name (their Fisher information,
kept in the artifact): a word the model has never seen is free, a concept that thousands of rows
agreed on moves little. Our own prompts are rehearsed beside it with the served model's own answers.
Runs in a background process; counterparts: `classifier.traffic`, `classifier.produced`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, vstack

from classifier.artifact import (
    LANES,
    Artifact,
    LinearPredictor,
    evidence_bytes,
    hash_name,
    information_of,
)
from classifier.classes import CLASSES
from classifier.produced import MEASURED_ERROR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from classifier.traffic import Example

    Array = np.ndarray[Any, np.dtype[np.float64]]

MIN_EXAMPLES: Final = 200
LATER_SHARE: Final = 0.3
"""The newest share of the traffic judges the candidate, the rest trains it."""

PENALTY: Final = 1 / 0.3
STEM_SCALE: Final = 0.5
"""The penalty of training (see `estimator`): squared weights of concepts, and of stems, whose value
there is half and whose weight therefore costs four times as much."""

MIN_COUNT: Final = 2
"""A name must have occurred in so many answers to be corrected."""

REHEARSAL: Final = 3.0
"""What one of our own prompts counts, in rows of training."""


ANSWER: Final = 8.0
CAUTION: Final = 300.0
"""What an answer counts against a training row, and how many times over the training rows'
knowledge of a name holds it (names of one text lean together). Chosen with draws 11 to 14 of
`classifier.proof` over all kinds, one fold each: with 150, or with 12 instead of 8, more is lost
elsewhere and hardly more gained."""

LEAST_GAIN: Final = 0.01
LEAST_Z: Final = 1.64
LEAST_LIFT: Final = 0.10
SURE_LIFT: Final = 3.0
MOST_LOSS: Final = 0.01
MOST_REGRET: Final = 0.002
"""Promotion: log loss on later traffic better by LEAST_GAIN nats and by LEAST_Z standard errors
(one-sided 5 %); mean recall LEAST_LIFT and SURE_LIFT standard errors above guessing (labels that
do not follow from the requests, a poisoned stream, give none); mean recall on our own prompts,
which both models have seen, not lower by MOST_LOSS; the time that wrong choices of a mode cost,
with the speeds measured now, not higher by MOST_REGRET of an answer's time."""

KEPT_VERSIONS: Final = 3
_QUANTUM: Final = 127
_ZERO: Final = 128
_N: Final = len(CLASSES)

Speeds = dict[str, dict[str, float]]
"""Relative decode speed by mode and class value, every class present in each mode."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was done and why; losses in nats per request, recalls are means, regrets shares of an
    answer's time (None without measured speeds)."""

    action: str  # "kept", "promoted" or "rolled back"
    reason: str
    answers: int
    served_loss: float = 0.0
    candidate_loss: float = 0.0
    recall: float = 0.0
    rehearsed_change: float = 0.0
    served_regret: float | None = None
    candidate_regret: float | None = None

    @property
    def promoted(self) -> bool:
        """Whether the candidate is served from now on."""
        return self.action == "promoted"


@dataclass(slots=True)
class Learner:
    """Fits candidates against a served artifact and judges them; keeps the last versions.

    `since` is when the served one was promoted (Unix seconds), `own` our own prompts.
    """

    served: Artifact
    own: Sequence[Example]
    previous: list[Artifact] = field(default_factory=list)
    since: float = 0.0
    speeds: Sequence[Speeds] = ()

    def study(self, traffic: Sequence[Example], now: float) -> Verdict:
        """Takes a promotion back that later traffic speaks against, else tries to do better."""
        later = [example for example in traffic if example.at > self.since]
        if self.previous and len(later) >= MIN_EXAMPLES:
            verdict = self._judge(self.served, self.previous[-1], later)
            if verdict.promoted:
                self.roll_back()
                self.since = now
                return replace(verdict, action="rolled back", reason="the version before is better")
        verdict = self.learn(traffic)
        if verdict.promoted:
            self.since = now
        return verdict

    def learn(self, traffic: Sequence[Example]) -> Verdict:
        """Fits on the older traffic, judges on the newer, and serves the winner."""
        if len(traffic) < MIN_EXAMPLES:
            reason = f"{len(traffic)} answers, {MIN_EXAMPLES} needed"
            return Verdict("kept", reason, len(traffic))
        older, newer = _parted(traffic)
        candidate = fit(self.served, older, self.own)
        verdict = self._judge(self.served, candidate, newer)
        if verdict.promoted:  # what has judged teaches as well; later traffic judges the result
            self.previous = [*self.previous, self.served][-KEPT_VERSIONS:]
            self.served = fit(self.served, traffic, self.own)
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

    def _judge(self, served: Artifact, other: Artifact, later: Sequence[Example]) -> Verdict:
        return judge(served, other, later, self.own, self.speeds)


def _parted(traffic: Sequence[Example]) -> tuple[Sequence[Example], Sequence[Example]]:
    cut = int(len(traffic) * (1 - LATER_SHARE))
    return traffic[:cut], traffic[cut:]


def fit(served: Artifact, traffic: Sequence[Example], own: Sequence[Example]) -> Artifact:
    """The served model plus the correction that the traffic asks for."""
    columns = _columns(traffic)
    here, there = _matrix(traffic, columns), _matrix(own, columns)
    offsets = np.vstack([scores(served, traffic), scores(served, own)])
    targets = np.vstack([np.eye(_N)[_labels(traffic)], _softmax(offsets[len(traffic) :])])
    sizes = [len(traffic), len(own)]
    weights, slips = np.repeat([ANSWER, REHEARSAL], sizes), np.repeat([MEASURED_ERROR, 0.0], sizes)
    known, bias_known = _information(served)
    hold = [
        PENALTY / (STEM_SCALE**2 if hashed & 1 else 1.0) + CAUTION * known.get(hashed, 0.0)
        for hashed in columns
    ]
    matrix = vstack([here, there]).tocsr()
    holds = np.array([*hold, PENALTY + CAUTION * bias_known])
    correction = _correction(matrix, offsets, targets, slips, weights, holds)
    chances = _softmax(offsets[: len(traffic)] + here @ correction[:-1] + correction[-1])
    doubt = ANSWER * (chances * (1.0 - chances)).mean(axis=1)
    learned = dict(zip(columns, (here.T @ doubt).tolist(), strict=True))
    return _corrected(served, columns, correction, learned, float(doubt.sum()))


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


def _labels(examples: Sequence[Example]) -> Any:
    return np.array([CLASSES.index(example.answer) for example in examples], dtype=int)


def _information(artifact: Artifact) -> tuple[dict[int, float], float]:
    """What the training knew of each name, by hash, and of the biases."""
    keys = [*map(hash_name, artifact.names), *artifact.hashed]
    known = information_of(artifact.evidence) or [0.0] * len(keys)
    # A name that was silent until traffic made it speak is among the hashed as well: that counts.
    silent = zip(artifact.silent, information_of(artifact.silent_evidence), strict=True)
    return dict(silent) | dict(zip(keys, known, strict=True)), artifact.bias_evidence


def _correction(
    matrix: Any, offset: Array, targets: Array, slips: Array, weights: Array, holds: Array
) -> Array:
    """The penalised maximum-likelihood correction: features x classes, the bias as last row.

    `targets` are class probabilities by row, `slips` the share of them that are read wrongly (a
    label that all else speaks against pulls less), `holds` the penalty of each feature and of the
    bias.
    """
    shape, transposed = (matrix.shape[1] + 1, _N), matrix.T.tocsr()

    def objective(flat: Array) -> tuple[float, Array]:
        table = flat.reshape(shape)
        logits = offset + matrix @ table[:-1] + table[-1]
        chances = _softmax(logits)
        read = _read_as(chances, slips[:, None])
        loss = -float((weights[:, None] * targets * np.log(read)).sum())
        pull = targets * chances * _kept(slips[:, None]) / read
        slope = (chances * pull.sum(axis=1, keepdims=True) - pull) * weights[:, None]
        held = holds[:, None] * table
        gradient = np.vstack([transposed @ slope, slope.sum(axis=0)]) + held
        return loss + 0.5 * float((held * table).sum()), gradient.ravel()

    start = np.zeros(shape[0] * shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 150})
    result: Array = found.x.reshape(shape)
    return result


def _class_table(artifact: Artifact) -> dict[int, Array]:
    """Class weights by hash of the name."""
    keys = [*map(hash_name, artifact.names), *artifact.hashed]
    raw = np.frombuffer(artifact.rows + artifact.hashed_rows, dtype=np.uint8)
    lanes = raw.reshape(-1, len(LANES))[:, :_N].astype(float) - _ZERO
    return dict(zip(keys, lanes * np.array(artifact.scales[:_N]), strict=True))


def scores(artifact: Artifact, examples: Sequence[Example]) -> Array:
    """Class log-odds of each example (examples x classes)."""
    table = _class_table(artifact)
    result = np.tile(np.array(artifact.biases[:_N]), (len(examples), 1))
    for at, example in enumerate(examples):
        for hashed in example.hashes:
            if (weights := table.get(hashed)) is not None:
                result[at] += weights
    return result


def _corrected(
    served: Artifact,
    columns: Sequence[int],
    correction: Array,
    learned: Mapping[int, float],
    bias_learned: float,
) -> Artifact:
    """The artifact with class lanes corrected; names it does not know are added by hash."""
    table = _class_table(served)
    for hashed, change in zip(columns, correction[:-1], strict=True):
        table[hashed] = table.get(hashed, np.zeros(_N)) + change
    named = list(map(hash_name, served.names))
    known = set(named)
    unnamed = [hashed for hashed in table if hashed not in known]
    order = [*named, *unnamed]
    rows, scales = _quantised(served, np.array([table[hashed] for hashed in order]))
    information, bias_information = _information(served)
    evidence = [information.get(h, 0.0) + learned.get(h, 0.0) for h in order]
    biases = np.array(served.biases[:_N]) + correction[-1]
    at = len(named) * len(LANES)
    return replace(
        served,
        version=f"learned-{blake2b(rows + biases.tobytes(), digest_size=4).hexdigest()}",
        rows=rows[:at],
        hashed=tuple(unnamed),
        hashed_rows=rows[at:],
        scales=(*map(float, scales), *served.scales[_N:]),
        biases=(*map(float, biases), *served.biases[_N:]),
        card={**served.card, "learned_from": served.version},
        evidence=evidence_bytes(evidence),
        bias_evidence=bias_information + bias_learned,
    )


def _quantised(served: Artifact, class_weights: Array) -> tuple[bytes, Array]:
    """Rows of all lanes, and the class lanes' scales; the lanes of kinds stay as they are."""
    lanes = len(LANES)
    scales = np.abs(class_weights).max(axis=0) / _QUANTUM
    raw = np.full((len(class_weights), lanes), _ZERO, dtype=np.uint8)
    old = np.frombuffer(served.rows + served.hashed_rows, dtype=np.uint8).reshape(-1, lanes)
    raw[: len(old)] = old  # hashed names of an earlier round come first among the unnamed
    raw[:, :_N] = np.round(class_weights / scales) + _ZERO
    return raw.tobytes(), scales


def judge(
    served: Artifact,
    candidate: Artifact,
    later: Sequence[Example],
    own: Sequence[Example],
    speeds: Sequence[Speeds] = (),
) -> Verdict:
    """Whether the candidate may be served; see the constants for the conditions."""
    labels, own_labels = _labels(later), _labels(own)
    old, new = scores(served, later), scores(candidate, later)
    gains = _losses(old, labels) - _losses(new, labels)
    error = float(gains.std(ddof=1)) / len(gains) ** 0.5
    gain, recall = float(gains.mean()), _mean_recall(new, labels)
    change = _mean_recall(scores(candidate, own), own_labels) - _mean_recall(
        scores(served, own), own_labels
    )
    regrets = [regret(_softmax(logits), labels, speeds) for logits in (old, new)]
    guessing, doubt = _by_chance(new, labels)
    checks = {
        "no gain on later traffic": gain >= LEAST_GAIN and gain >= LEAST_Z * error,
        "labels do not follow from requests": recall
        >= guessing + max(LEAST_LIFT, SURE_LIFT * doubt),
        "worse on our own prompts": change >= -MOST_LOSS,
        "more time lost to wrong choices": (regrets[1] or 0) <= (regrets[0] or 0) + MOST_REGRET,
    }
    failed = [reason for reason, passed in checks.items() if not passed]
    return Verdict(
        action="kept" if failed else "promoted",
        reason="; ".join(failed) or "better on later traffic",
        answers=len(later),
        served_loss=float(_losses(old, labels).mean()),
        candidate_loss=float(_losses(new, labels).mean()),
        recall=recall,
        rehearsed_change=change,
        served_regret=regrets[0],
        candidate_regret=regrets[1],
    )


def regret(chances: Array, labels: Any, speeds: Sequence[Speeds]) -> float | None:
    """Mean share of an answer's decode time that is lost by choosing the mode that `chances`
    (rows x classes) expect to be fastest instead of the one that `labels` prove to be.

    The mean over the tables of `speeds` (one per model) that leave a choice; None if none does.
    """
    lost = []
    for table in speeds:
        if len(table) > 1:
            times = 1.0 / np.array([[row[c.value] for c in CLASSES] for row in table.values()])
            chosen = times[(chances @ times.T).argmin(axis=1), labels]
            lost.append(float((chosen / times.min(axis=0)[labels] - 1.0).mean()))
    return sum(lost) / len(lost) if lost else None


def _softmax(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: Array = shifted / shifted.sum(axis=1, keepdims=True)
    return result


def _losses(logits: Array, labels: Any) -> Array:
    """Nats of each label that traffic gave; some are read wrongly, and no model is to blame."""
    hit = _softmax(logits)[np.arange(len(labels)), labels]
    result: Array = -np.log(_read_as(hit, MEASURED_ERROR))
    return result


def _read_as(chances: Array, slips: Any) -> Array:
    """Probabilities of the classes that are read off answers, of which `slips` are another one."""
    result: Array = chances * _kept(slips) + slips / (_N - 1)
    return result


def _kept(slips: Any) -> Any:
    return 1.0 - slips * _N / (_N - 1)


def _mean_recall(logits: Array, labels: Any) -> float:
    guesses = logits.argmax(axis=1)
    return float(
        np.mean([(guesses[labels == c] == c).mean() for c in sorted(set(labels.tolist()))])
    )


def _by_chance(logits: Array, labels: Any) -> tuple[float, float]:
    """The mean recall that such guesses have of labels they have nothing to do with, and its
    standard error: a class is then hit as often as it is guessed."""
    guesses, present = logits.argmax(axis=1), sorted(set(labels.tolist()))
    shares = [float((guesses == c).mean()) for c in present]
    spreads = [s * (1 - s) / (labels == c).sum() for c, s in zip(present, shares, strict=True)]
    return sum(shares) / len(present), float(sum(spreads)) ** 0.5 / len(present)
