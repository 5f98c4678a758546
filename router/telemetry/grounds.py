"""What the classifier went by in one request, for people: features and what they weighed.

Concepts, places and forms by their names; the text's own words only as a count and a sum, because
a name of that kind is a word of somebody's prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from classifier import is_stem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from classifier import Contribution, RequestFeatures
    from router.core import Outcome

    Explain = Callable[[RequestFeatures], Sequence[Contribution]]

TOP: Final = 8
"""Features shown beside the words."""

_SHOWN: Final = (
    *("prompt_chars", "user_chars", "n_messages", "has_images", "has_tools", "has_grammar"),
    *("max_tokens", "language", "thinking", "thinking_said", "forced", "asked_words"),
)


def grounds_of(outcome: Outcome, explain: Explain) -> dict[str, Any] | None:
    """`features` as a mapping and `contributions` as (name, weight by class); None: not classified.

    Weights are in log-odds towards each class, the strongest first.
    """
    features = outcome.features
    if features is None:
        return None
    found = explain(features)
    named = [item for item in found if not is_stem(item.name)]
    words = [item.weights for item in found if is_stem(item.name)]
    rows = [_row(item.name, item.weights) for item in named[:TOP]]
    if words:
        rows.append(_row(f"{len(words)} words", _sum(words)))
    return {
        "features": {name: getattr(features, name) for name in _SHOWN} | {"names": len(found)},
        "contributions": rows,
    }


def _row(name: str, weights: Mapping[str, float]) -> dict[str, Any]:
    return {"name": name, "weights": {key: round(value, 3) for key, value in weights.items()}}


def _sum(many: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for weights in many:
        for name, value in weights.items():
            total[name] = total.get(name, 0.0) + value
    return total
