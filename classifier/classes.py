"""The closed list of workload classes and kinds, and the classifier's answer.

A class says how predictable the text of an answer will be to a drafter; a kind says what the answer
is made of. Counterpart: `router.policy`, which prices a worker per class.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from classifier.quick import quick

if TYPE_CHECKING:
    from collections.abc import Mapping


class WorkloadClass(StrEnum):
    """What the first tokens of the answer will be."""

    STRUCTURED = "structured"
    PROSE = "prose"
    REASONING = "reasoning"


CLASSES: Final[tuple[WorkloadClass, ...]] = tuple(WorkloadClass)

KINDS: Final[Mapping[WorkloadClass, tuple[str, ...]]] = {
    WorkloadClass.STRUCTURED: (
        "code",
        "json",
        "list",
        "table",
        "extraction",
        "count",
        "tool_call",
        "rewrite",
    ),
    WorkloadClass.PROSE: (
        "chat",
        "essay",
        "story",
        "translation",
        "summary",
        "long_document",
        "qa",
        "roleplay",
    ),
    WorkloadClass.REASONING: ("math", "logic", "planning"),
}
"""Kinds by class; a kind belongs to exactly one class. The order is the artifact's lane order."""

CLASS_OF_KIND: Final[Mapping[str, WorkloadClass]] = {
    kind: workload_class for workload_class, kinds in KINDS.items() for kind in kinds
}

DEFAULT_KIND: Final[Mapping[WorkloadClass, str]] = {
    WorkloadClass.STRUCTURED: "code",
    WorkloadClass.PROSE: "qa",
    WorkloadClass.REASONING: "logic",
}
"""The kind assumed when only the class is known (a client's hint)."""


@quick
@dataclass(frozen=True, slots=True)
class Classification:
    """What a request will probably produce.

    `probabilities` is by class value and sums to 1. `expected_output_tokens` is the median of a
    log-normal, reasoning tokens included; `output_tokens_interval` is its 80 % interval.
    `language` is the natural-language group of the answer: en, ru, zh or other. `source` says who
    decided: rules, model, hint or memory. `accepted` is the mean accepted length of what this
    application produced over what is usual of such texts; 1 where nothing is known.
    """

    workload_class: WorkloadClass
    kind: str
    probabilities: Mapping[str, float]
    expected_output_tokens: float
    output_tokens_interval: tuple[float, float]
    model_version: str
    thinking: bool
    language: str
    source: str
    accepted: float = 1.0


@dataclass(frozen=True, slots=True)
class Contribution:
    """One feature's additive weight towards each class (log-odds units, by class value)."""

    name: str
    weights: Mapping[str, float]
