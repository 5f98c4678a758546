"""What was asked: requests of a sample as class and sizes, from decision logs or chat bodies."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from classifier import extract, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from classifier import Predictor

CHARS_PER_TOKEN: Final = 4.0
"""Where nobody counted: English prose under common tokenizers has about this many."""


_Tokens = Annotated[int, Field(strict=True, ge=0, le=10_000_000)]


class BadTraffic(ValueError):
    """A file that cannot be read, or has no request in it; the message names it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One request: its class, prompt and output in tokens."""

    workload_class: str
    prompt_tokens: float
    output_tokens: float


@pydantic_dataclass(frozen=True, slots=True, config=ConfigDict(allow_inf_nan=False))
class _Logged:
    """Of a line of a decision log, what was asked and answered."""

    workload_class: Annotated[str, Field(strict=True, min_length=1)]
    prompt_tokens: _Tokens | None
    prompt_chars: Annotated[int, Field(strict=True, ge=0, le=10**12)]
    completion_tokens: _Tokens | None
    expected_tokens: Annotated[float, Field(strict=True, ge=0, le=1e7)] | None


_LOGGED: Final = TypeAdapter(_Logged)


def read_traffic(paths: Sequence[Path]) -> list[Shape]:
    """The requests of decision logs, or of JSON lines of chat bodies (.gz too).

    Raises:
        BadTraffic: a file has none, or cannot be read.
    """
    predictor = load()
    shapes: list[Shape] = []
    for path in paths:
        found = [s for row in _rows(path) if (s := _shape(row, predictor)) is not None]
        if not found:
            raise BadTraffic(f"{path} has neither logged decisions nor chat bodies")
        shapes += found
    return shapes


def mix(shapes: Sequence[Shape]) -> dict[str, float]:
    """Shares of the classes, the largest first."""
    counts = Counter(shape.workload_class for shape in shapes)
    return {name: round(count / len(shapes), 4) for name, count in counts.most_common()}


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    for line in _lines(path):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # cut short by a crash
        if isinstance(row, dict):
            yield row


def _lines(path: Path) -> Iterator[bytes]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise BadTraffic(f"{path} cannot be read: {error}") from error


def _shape(row: Mapping[str, Any], predictor: Predictor) -> Shape | None:
    if isinstance(row.get("request"), dict) and isinstance(row.get("outcome"), dict):
        return _logged(row["request"], row["outcome"])
    if isinstance(row.get("messages"), list):
        return _asked(row, predictor)
    return None


def _logged(request: Mapping[str, Any], outcome: Mapping[str, Any]) -> Shape | None:
    if "class" not in request or outcome.get("status") != "ok":
        return None
    told = {
        "workload_class": request["class"],
        "prompt_tokens": request.get("prompt_tokens"),
        "prompt_chars": request.get("prompt_chars", 0),
        "completion_tokens": outcome.get("completion_tokens"),
        "expected_tokens": request.get("expected_output_tokens"),
    }
    try:
        line = _LOGGED.validate_python(told)
    except ValidationError:
        return None
    prompt = line.prompt_tokens or line.prompt_chars / CHARS_PER_TOKEN
    output = line.completion_tokens or line.expected_tokens or 1
    return Shape(line.workload_class, float(prompt), float(output))


def _asked(body: Mapping[str, Any], predictor: Predictor) -> Shape:
    found = predictor.predict(extract(body))
    texts = (message.get("content") for message in body["messages"] if isinstance(message, dict))
    chars = sum(len(text) for text in texts if isinstance(text, str))
    limit = body.get("max_tokens")
    expected = float(found.expected_output_tokens)
    output = min(expected, float(limit)) if isinstance(limit, int) and limit > 0 else expected
    return Shape(found.workload_class.value, chars / CHARS_PER_TOKEN, max(1.0, output))
