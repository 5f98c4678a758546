"""The learned model and those before it, as gateways hand them round."""

from __future__ import annotations

import json
from dataclasses import dataclass

from classifier.artifact import Artifact, BadArtifact, from_text, to_text


@dataclass(frozen=True, slots=True)
class Line:
    """`base` is the version of the shipped model it all began with: another release's line says
    nothing about ours. `since` is when `served` was promoted, in Unix seconds."""

    base: str
    since: float
    served: Artifact
    previous: tuple[Artifact, ...] = ()


def to_bytes(line: Line) -> bytes:
    """The line as JSON."""
    data = {
        "base": line.base,
        "since": line.since,
        "served": to_text(line.served),
        "previous": [to_text(artifact) for artifact in line.previous],
    }
    return json.dumps(data).encode()


def from_bytes(raw: bytes, base: str) -> Line | None:
    """The line; None for one that began with another model, or is of another format."""
    try:
        data = json.loads(raw)
        if data["base"] != base:
            return None
        previous = tuple(from_text(text, "previous model") for text in data["previous"])
        served = from_text(data["served"], "learned model")
        return Line(base, float(data["since"]), served, previous)
    except (BadArtifact, ValueError, KeyError, TypeError):
        return None
