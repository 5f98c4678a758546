"""Proves learning: a model that never saw a language and a kind meets 500 requests of that traffic.

The language is left out of the training rows and of the word lists as well: its letters are swapped
for Armenian ones, so that only learning can tell what its words mean.

A draw is made in folds: each fifth of the rest is kept out of training once, and each time other
requests are met; figures are of all five together. In one fold alone a class may have twenty rows,
of which two are a hundredth of macro F1: what learning costs could not be told from luck.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from classifier.artifact import LinearPredictor
from classifier.classes import CLASS_OF_KIND, CLASSES, WorkloadClass
from classifier.estimator import Settings
from classifier.features import extract
from classifier.learning import Learner, Verdict
from classifier.metrics import Scored, accuracy, macro_f1
from classifier.produced import MEASURED_ERROR
from classifier.rules import settled
from classifier.traffic import Example, hashes_of
from classifier.train import TrainConfig, train

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from classifier.artifact import Artifact
    from classifier.dataset import LabelledRequest

ANSWERS: Final = 500
FOLDS: Final = 5
"""Parts of the rest, each kept out of training once, to see what learning loses there."""

LEAST_CHANGE: Final = 0.15
MOST_COST: Final = 0.01
"""Macro F1 that 500 answers must gain in their own traffic, and may cost elsewhere."""

LEAST_ROWS: Final = 30
"""Rows of a kind that make it worth leaving out."""

_LETTERS: Final = "абвгдежзийклмнопрстуфхцчшщъыьэюяё"
_ARMENIAN: Final = "".join(chr(0x0561 + at) for at in range(len(_LETTERS)))
_DISGUISE: Final = str.maketrans(
    _LETTERS + _LETTERS.upper(), _ARMENIAN + "".join(chr(ord(c) - 0x30) for c in _ARMENIAN)
)


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is left out, how many labels are wrong (`error`, a share), and the seed of the draws.

    `blind` leaves the language out of the word lists too; `shuffled` poisons the stream.
    """

    language: str = "ru"
    kind: str = "tool_call"
    error: float = MEASURED_ERROR
    seed: int = 0
    blind: bool = True
    shuffled: bool = False


@dataclass(frozen=True, slots=True)
class Parts:
    """Rows by their use: what the model trains on, 500 requests it meets, and two to measure on."""

    training: list[LabelledRequest]
    met: list[LabelledRequest]
    there: list[LabelledRequest]
    elsewhere: list[LabelledRequest]


@dataclass(frozen=True, slots=True)
class Proof:
    """Macro F1 before and after by part (there, language, kind, elsewhere; `kind` is accuracy, its
    rows are of one class) over all folds, and the verdict on each fold's candidate."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    verdicts: Sequence[Verdict]

    @property
    def promoted(self) -> int:
        """How many of the candidates were."""
        return sum(verdict.promoted for verdict in self.verdicts)

    def change(self, part: str) -> float:
        """What learning changed in a part's figure."""
        return self.after[part] - self.before[part]

    def meets(self, trial: str) -> bool:
        """Whether the outcome is what the trial is held to: nothing promoted of a poisoned stream,
        else every candidate promoted and little lost elsewhere; and, where the word lists do not
        carry the language already, that it gains LEAST_CHANGE there."""
        if trial == "poisoned":
            return not self.promoted
        everyone = self.promoted == len(self.verdicts)
        kept = everyone and self.change("elsewhere") >= -MOST_COST
        return kept and (trial != "blind" or self.change("there") >= LEAST_CHANGE)


def prove(
    rows: Sequence[LabelledRequest],
    extra: Sequence[LabelledRequest],
    experiment: Experiment,
    folds: int = FOLDS,
) -> Proof:
    """Trains without, learns from 500, measures, once for each of so many folds (1 to FOLDS).

    `rows` are public or own; `extra` rows only ever train and are rehearsed, as our own prompts.
    """
    own = examples([row for row in extra if not _left_out(row, experiment)], blind=False)
    verdicts, before, after = [], [], []
    for fold in range(folds):
        parts = divide(rows, extra, experiment, fold)
        learner = Learner(train(parts.training, TrainConfig(Settings(inner_folds=0), {})), own)
        before.append(_guesses(learner.served, parts, experiment))
        verdicts.append(learner.learn(_stream(parts.met, experiment)))
        after.append(_guesses(learner.served, parts, experiment))
    return Proof(_measured(before, experiment), _measured(after, experiment), verdicts)


def kinds_of(rows: Sequence[LabelledRequest]) -> list[str]:
    """The kinds with at least LEAST_ROWS rows, in the order of `CLASS_OF_KIND`."""
    counts = Counter(row.kind for row in rows)
    return [kind for kind in CLASS_OF_KIND if counts[kind] >= LEAST_ROWS]


def divide(
    rows: Sequence[LabelledRequest],
    extra: Sequence[LabelledRequest],
    experiment: Experiment,
    fold: int = 0,
) -> Parts:
    """The rows by use; half of the requests met are of the kind, if there are enough."""
    rng = Random(experiment.seed)  # noqa: S311 - draws, nothing secret
    free = [row for row in rows if settled(extract(row.body)) is None]
    away = [row for row in free if not _left_out(row, experiment)]
    of_kind = [row for row in free if row.kind == experiment.kind]
    of_language = [row for row in free if _left_out(row, experiment) and row not in of_kind]
    rng.shuffle(away)
    rng = Random(f"{experiment.seed} {fold}")  # noqa: S311
    for part in (of_kind, of_language):
        rng.shuffle(part)
    half = min(len(of_kind) * 2 // 3, ANSWERS // 2)
    rest = min(ANSWERS - half, len(of_language) * 2 // 3)
    met = of_kind[:half] + of_language[:rest]
    rng.shuffle(met)
    kept = [row for at, row in enumerate(away) if at % FOLDS != fold]
    training = [*kept, *(row for row in extra if not _left_out(row, experiment))]
    return Parts(training, met, of_kind[half:] + of_language[rest:], away[fold::FOLDS])


def _left_out(row: LabelledRequest, experiment: Experiment) -> bool:
    return row.language == experiment.language or row.kind == experiment.kind


def examples(rows: Sequence[LabelledRequest], *, blind: bool) -> list[Example]:
    """The rows as learning sees them."""
    return [
        Example(
            hashes_of(extract(disguised(row.body) if blind else row.body)),
            row.kind if CLASS_OF_KIND.get(row.kind) is row.answer else _some_kind(row.answer),
        )
        for row in rows
    ]


def _some_kind(answer: WorkloadClass) -> str:
    return next(kind for kind, own in CLASS_OF_KIND.items() if own is answer)


def disguised(value: Any) -> Any:
    """The body with Cyrillic letters swapped for Armenian ones: no word list knows the words."""
    if isinstance(value, str):
        return value.translate(_DISGUISE)
    if isinstance(value, dict):
        return {name: disguised(item) for name, item in value.items()}
    return [disguised(item) for item in value] if isinstance(value, list) else value


def _stream(rows: Sequence[LabelledRequest], experiment: Experiment) -> list[Example]:
    """What the gateway would have kept: labels wrong at the measured rate, or all at random."""
    rng = Random(experiment.seed + 1)  # noqa: S311 - draws, nothing secret
    found = examples(rows, blind=experiment.blind)
    kinds = [example.kind for example in found]
    if experiment.shuffled:
        rng.shuffle(kinds)
    else:
        kinds = [_wrong(kind, rng) if rng.random() < experiment.error else kind for kind in kinds]
    return [Example(e.hashes, kind, float(at)) for at, (e, kind) in enumerate(zip(found, kinds))]  # noqa: B905


def _wrong(kind: str, rng: Random) -> str:
    return _some_kind(rng.choice([c for c in CLASSES if c is not CLASS_OF_KIND[kind]]))


def _guesses(artifact: Artifact, parts: Parts, experiment: Experiment) -> tuple[list[Scored], ...]:
    rows = (parts.there, parts.elsewhere)
    return tuple(_scored(artifact, part, experiment) for part in rows)


def _measured(
    folds: Sequence[tuple[list[Scored], ...]], experiment: Experiment
) -> dict[str, float]:
    there, elsewhere = (
        [row for part in parts for row in part] for parts in zip(*folds, strict=True)
    )
    return {
        "there": macro_f1(there),
        "language": macro_f1([row for row in there if row.language == experiment.language]),
        "kind": accuracy([row for row in there if row.group == experiment.kind]),
        "elsewhere": macro_f1(elsewhere),
    }


def _scored(
    artifact: Artifact, rows: Sequence[LabelledRequest], experiment: Experiment
) -> list[Scored]:
    predictor = LinearPredictor(artifact)
    found = []
    for row in rows:
        body = disguised(row.body) if experiment.blind else row.body
        chances = predictor.predict(extract(body)).probabilities
        found.append(Scored(row.answer, chances, row.language, row.kind, row.ambiguous))
    return found
