"""What a gateway asks a study to do; apart from `study`, which imports what a gateway must not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """Where to study, and the measured speeds (one table per model) that tell what errors cost."""

    redis_url: str
    cluster_secret: str
    speeds: tuple[dict[str, dict[str, float]], ...] = ()
