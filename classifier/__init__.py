"""Knows before the first token what kind of text a request will produce."""

from __future__ import annotations

from classifier.artifact import Predictor, load
from classifier.classes import (
    CLASS_OF_KIND,
    CLASSES,
    KINDS,
    Classification,
    Contribution,
    WorkloadClass,
)
from classifier.features import RequestFeatures, extract, is_stem
from classifier.memory import Evidence, Memory, Remembered, blend, combine, fingerprint
from classifier.produced import ProducedLabel, label_output
from classifier.rules import RuleClassifier
from classifier.traffic import sample

__all__ = [
    "CLASSES",
    "CLASS_OF_KIND",
    "KINDS",
    "Classification",
    "Contribution",
    "Evidence",
    "Memory",
    "Predictor",
    "ProducedLabel",
    "Remembered",
    "RequestFeatures",
    "RuleClassifier",
    "WorkloadClass",
    "blend",
    "combine",
    "extract",
    "fingerprint",
    "is_stem",
    "label_output",
    "load",
    "sample",
]
