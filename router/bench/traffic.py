"""What was asked: requests of a sample as class and sizes, from decision logs or chat bodies."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from classifier import extract, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from classifier import Predictor

CHARS_PER_TOKEN: Final = 4.0
"""Where nobody counted: English prose under common tokenizers has about this many."""


class BadTraffic(ValueError):
    """A file with no request in it; the message names it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One request: its class, prompt and output in tokens."""

    workload_class: str
    prompt_tokens: float
    output_tokens: float


def read_traffic(paths: Sequence[Path]) -> list[Shape]:
    """The requests of decision logs, or of JSON lines of chat bodies (.gz too).

    Raises:
        BadTraffic: a file has none.
        OSError: one cannot be read.
    """
    predictor = load()
    shapes: list[Shape] = []
    for path in paths:
        found = [s for row in _lines(path) if (s := _shape(row, predictor)) is not None]
        if not found:
            raise BadTraffic(f"{path} has neither logged decisions nor chat bodies")
        shapes += found
    return shapes


def mix(shapes: Sequence[Shape]) -> dict[str, float]:
    """Shares of the classes, the largest first."""
    counts = Counter(shape.workload_class for shape in shapes)
    return {name: round(count / len(shapes), 4) for name, count in counts.most_common()}


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        for line in file:
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue  # cut short by a crash
            if isinstance(row, dict):
                yield row


def _shape(row: Mapping[str, Any], predictor: Predictor) -> Shape | None:
    if isinstance(row.get("request"), dict) and isinstance(row.get("outcome"), dict):
        return _logged(row["request"], row["outcome"])
    if isinstance(row.get("messages"), list):
        return _asked(row, predictor)
    return None


def _logged(request: Mapping[str, Any], outcome: Mapping[str, Any]) -> Shape | None:
    if "class" not in request or outcome.get("status") != "ok":
        return None
    prompt = request.get("prompt_tokens") or request.get("prompt_chars", 0) / CHARS_PER_TOKEN
    output = outcome.get("completion_tokens") or request.get("expected_output_tokens") or 1
    return Shape(str(request["class"]), float(prompt), float(output))


def _asked(body: Mapping[str, Any], predictor: Predictor) -> Shape:
    found = predictor.predict(extract(body))
    texts = (message.get("content") for message in body["messages"] if isinstance(message, dict))
    chars = sum(len(text) for text in texts if isinstance(text, str))
    limit = body.get("max_tokens")
    expected = float(found.expected_output_tokens)
    output = min(expected, float(limit)) if isinstance(limit, int) and limit > 0 else expected
    return Shape(found.workload_class.value, chars / CHARS_PER_TOKEN, max(1.0, output))
