"""A readable account of one classification: what was found in the request and what it weighed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from classifier.features import extract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from classifier.artifact import Predictor
    from classifier.classes import Classification, Contribution


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer and the features behind it, strongest first."""

    classification: Classification
    contributions: tuple[Contribution, ...]


def explain(
    payload: Mapping[str, Any], predictor: Predictor, *, default_thinking: bool = False
) -> Explanation:
    """Classifies a body and says why."""
    features = extract(payload, default_thinking=default_thinking)
    return Explanation(predictor.predict(features), predictor.explain(features))


def to_json(explanation: Explanation, top: int) -> dict[str, Any]:
    """The explanation as JSON values, the `top` strongest contributions."""
    answer = explanation.classification
    return {
        "class": answer.workload_class.value,
        "kind": answer.kind,
        "probabilities": dict(answer.probabilities),
        "expected_output_tokens": answer.expected_output_tokens,
        "output_tokens_interval": list(answer.output_tokens_interval),
        "thinking": answer.thinking,
        "language": answer.language,
        "source": answer.source,
        "model_version": answer.model_version,
        "contributions": [
            {"name": item.name, "weights": dict(item.weights)}
            for item in explanation.contributions[:top]
        ],
    }


def to_text(explanation: Explanation, top: int) -> str:
    """The explanation as lines for a terminal."""
    answer = explanation.classification
    low, high = answer.output_tokens_interval
    lines = [
        f"{answer.workload_class.value} ({answer.kind}), by {answer.source} {answer.model_version}",
        "  ".join(f"{name} {value:.3f}" for name, value in answer.probabilities.items()),
        f"about {answer.expected_output_tokens:.0f} tokens (80 %: {low:.0f} to {high:.0f})"
        f", language {answer.language}, thinking {'on' if answer.thinking else 'off'}",
    ]
    for item in explanation.contributions[:top]:
        weights = "  ".join(f"{name} {value:+.2f}" for name, value in item.weights.items())
        lines.append(f"  {item.name:<24} {weights}")
    return "\n".join(lines)
