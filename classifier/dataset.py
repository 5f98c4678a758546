"""Labelled requests from JSONL files; folds by group, never by row.

A line is a request body with `label` (what came first), and optionally `answer_label` (what came
after the thinking that a flag asked for), `sublabel` or `kind`, `group`, `language`, `ambiguous`.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from classifier.classes import CLASS_OF_KIND, WorkloadClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

KIND_OF_SUBLABEL: Final[Mapping[str, str]] = {
    "summarization": "summary",
    "long_doc": "long_document",
    "reasoning": "logic",
}
"""Names of kinds in data files that differ from ours."""

_NOT_BODY: Final = frozenset(
    {
        "id",
        "source",
        "group",
        "licence",
        "language",
        "label",
        "sublabel",
        "kind",
        "ambiguous",
        "answer_label",
        "answer_sublabel",
    }
)


@dataclass(frozen=True, slots=True)
class LabelledRequest:
    """One row: `label` is what the first tokens are, `answer` what the text alone would give
    (they differ only where a flag turned thinking on); `kind` belongs to `answer`."""

    identity: str
    body: Mapping[str, Any]
    label: WorkloadClass
    answer: WorkloadClass
    kind: str
    group: str
    language: str
    ambiguous: bool


class BadRow(ValueError):
    """A line that is not a labelled request; the message names file, line and what is wrong."""


def read(path: Path) -> list[LabelledRequest]:
    """All rows of a JSONL or .gz file; raises BadRow, OSError."""
    return [_row(path.name, number, line) for number, line in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line


def _row(name: str, number: int, line: str) -> LabelledRequest:
    try:
        data = json.loads(line)
        label = WorkloadClass(data["label"])
        answer = WorkloadClass(data.get("answer_label", label))
        sub = data.get("answer_sublabel") or data.get("sublabel") or data.get("kind") or ""
        kind = KIND_OF_SUBLABEL.get(sub, sub)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadRow(f"{name}:{number}: not a labelled request ({error!r})") from error
    return LabelledRequest(
        identity=str(data.get("id", f"{name}:{number}")),
        body={key: value for key, value in data.items() if key not in _NOT_BODY},
        label=label,
        answer=answer,
        kind=kind if CLASS_OF_KIND.get(kind) is answer else "",
        group=str(data.get("group", data.get("source", "own"))),
        language=str(data.get("language", "")),
        ambiguous=bool(data.get("ambiguous", False)),
    )


def groups(rows: Iterable[LabelledRequest]) -> list[str]:
    """The group of each row."""
    return [row.group for row in rows]
