"""The model-free classifier: what the request's fields settle, then stated scores of concepts.

It answers when no artifact can be read, and its first half (`settled`) goes before every model.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from classifier.classes import (
    CLASS_OF_KIND,
    CLASSES,
    DEFAULT_KIND,
    KINDS,
    Classification,
    Contribution,
    WorkloadClass,
)
from classifier.lengths import expected_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from classifier.features import RequestFeatures

RULES_VERSION: Final = "rules-1"

CERTAIN: Final = 0.97
LIKELY: Final = 0.90
"""Probability given to a class that the fields settle: a bound format or a thinking switch is
obeyed almost always; a predicted output is usually, not always, an edit."""

_STRUCTURED: Final = WorkloadClass.STRUCTURED
_PROSE: Final = WorkloadClass.PROSE
_REASONING: Final = WorkloadClass.REASONING

SCORES: Final[Mapping[str, tuple[str, float]]] = MappingProxyType(
    {
        "c:CODE": ("code", 1.5),
        "c:CODEV": ("code", 1.5),
        "c:TECH": ("code", 1.0),
        "x:fence": ("code", 0.7),
        "WRITE*CODE": ("code", 1.5),
        "MAKE*CODE": ("code", 1.5),
        "s:ONLY": ("code", 0.5),
        "s:CODE": ("code", 0.7),
        "c:JSON": ("json", 2.0),
        "s:JSON": ("json", 2.0),
        "c:TABLE": ("table", 2.0),
        "s:TABLE": ("table", 2.0),
        "c:LIST": ("list", 1.0),
        "lead:LISTV": ("list", 2.0),
        "c:SORT": ("list", 1.0),
        "c:EXTRACT": ("extraction", 2.0),
        "c:CLASSIFY": ("extraction", 1.2),
        "c:COUNT": ("count", 1.5),
        "t:meant": ("tool_call", 2.0),
        "t:shared2": ("tool_call", 1.5),
        "t:shared3": ("tool_call", 2.0),
        "lead:ACTION": ("tool_call", 0.5),
        "t:answered": ("qa", 2.0),
        "lead:EXPLAIN": ("qa", 2.5),
        "lead:WHY": ("qa", 2.0),
        "lead:WHAT": ("qa", 1.0),
        "lead:HOW": ("qa", 1.0),
        "lead:ADVICE": ("chat", 2.0),
        "lead:FEEL": ("chat", 1.5),
        "lead:TELL": ("chat", 2.0),
        "lead:COMPARE": ("qa", 1.5),
        "lead:OPINION": ("essay", 1.5),
        "c:ESSAY": ("essay", 1.5),
        "c:STORY": ("story", 2.0),
        "lead:ROLE": ("roleplay", 2.0),
        "lead:TRANSLATE": ("translation", 3.0),
        "lead:SUMMARISE": ("summary", 3.0),
        "lead:REWRITE": ("translation", 2.0),
        "lead:SOLVE": ("math", 2.0),
        "c:MATH": ("math", 1.0),
        "x:formula": ("math", 1.5),
        "x:options": ("math", 1.0),
        "n:problem": ("math", 2.0),
        "c:LOGIC": ("logic", 1.5),
        "STEP>STEP": ("logic", 3.0),
        "c:THINK": ("logic", 1.0),
        "c:PLAN": ("planning", 0.7),
    }
)
"""Feature to the kind it speaks for and how strongly (log-odds units)."""

PRIOR: Final[Mapping[str, float]] = MappingProxyType({"qa": 1.0})


def settled(features: RequestFeatures) -> tuple[WorkloadClass, str, float] | None:
    """Class, kind ("" if the text must tell) and probability that the fields settle, or None."""
    if features.thinking:
        return _REASONING, "", CERTAIN
    if features.forced:
        probability = LIKELY if features.forced == "rewrite" else CERTAIN
        return CLASS_OF_KIND[features.forced], features.forced, probability
    return None


def spread(workload_class: WorkloadClass, probability: float) -> dict[str, float]:
    """Probabilities by class value, the rest shared equally by the other classes."""
    rest = (1.0 - probability) / (len(CLASSES) - 1)
    return {c.value: probability if c is workload_class else rest for c in CLASSES}


def kind_scores(features: RequestFeatures) -> dict[str, float]:
    """Score by kind, summed over the features that speak for it."""
    scores = dict.fromkeys(CLASS_OF_KIND, 0.0) | dict(PRIOR)
    for name in SCORES.keys() & features.names:
        kind, weight = SCORES[name]
        scores[kind] += weight
    return scores


def best_kind(workload_class: WorkloadClass, scores: Mapping[str, float]) -> str:
    """The class's highest scoring kind; its default kind if none scores."""
    kind = max(KINDS[workload_class], key=lambda name: scores[name])
    return kind if scores[kind] > 0 else DEFAULT_KIND[workload_class]


class RuleClassifier:
    """Concept scores turned into probabilities by stated weights; needs no artifact."""

    version = RULES_VERSION

    def predict(self, features: RequestFeatures) -> Classification:
        """What the request will probably produce."""
        scores = kind_scores(features)
        decided = settled(features)
        if decided is None:
            probabilities = _probabilities(scores)
            winner = max(CLASSES, key=lambda c: probabilities[c.value])
            kind = best_kind(winner, scores)
        else:
            winner, kind, probability = decided
            kind = kind or best_kind(winner, scores)
            probabilities = spread(winner, probability)
        median, interval = expected_tokens(features, kind, features.thinking)
        return Classification(
            workload_class=winner,
            kind=kind,
            probabilities=probabilities,
            expected_output_tokens=median,
            output_tokens_interval=interval,
            model_version=self.version,
            thinking=features.thinking,
            language=features.language,
            source="rules",
        )

    def explain(self, features: RequestFeatures) -> tuple[Contribution, ...]:
        """The scored features present, strongest first."""
        found = sorted(SCORES.keys() & features.names, key=lambda name: (-SCORES[name][1], name))
        return tuple(
            Contribution(name, {CLASS_OF_KIND[SCORES[name][0]].value: SCORES[name][1]})
            for name in found
        )


def _probabilities(scores: Mapping[str, float]) -> dict[str, float]:
    """Each class weighs as much as its kinds together, doubled per unit of score."""
    sums = {c.value: 2.0 ** sum(scores[kind] for kind in KINDS[c]) for c in CLASSES}
    total = sum(sums.values())
    return {name: value / total for name, value in sums.items()}
