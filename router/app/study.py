"""One study of the classifier as a process of its own: read samples, fit, judge, publish, end.

`python -m router.app.study` reads one `Job` as JSON from its standard input and writes the verdict
as JSON to its standard output. A gateway starts it when enough answers have come (see `schooling`);
it is as patient as a process can be, so that it takes time nobody wants.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from classifier.artifact import SHIPPED, read
from classifier.authored import rows
from classifier.features import extract
from classifier.learning import Learner, Verdict
from classifier.line import Line, from_bytes, to_bytes
from classifier.traffic import Example, hashes_of, unpack
from router.app.study_job import Job
from router.in_redis import connect
from router.telemetry.lessons import Lessons
from workers.clock import SystemClock

if TYPE_CHECKING:
    from classifier.learning import Speeds
    from workers.clock import Clock

PATIENCE: Final = 19  # the lowest priority there is


def own_examples() -> list[Example]:
    """Our own prompts as learning sees them."""
    return [Example(hashes_of(extract(row.body)), row.kind) for row in rows()]


async def study(
    lessons: Lessons, own: list[Example], speeds: tuple[Speeds, ...], clock: Clock
) -> Verdict:
    """One round: what serves from now on is published if it changed.

    Raises:
        StoreUnavailable: Redis is away; nothing was changed.
    """
    shipped = read(SHIPPED)
    traffic = sorted(unpack(await lessons.samples()), key=lambda example: example.at)
    raw = await lessons.line()
    line = from_bytes(raw, shipped.version) if raw else None
    line = line or Line(shipped.version, 0.0, shipped)
    learner = Learner(line.served, own, list(line.previous), line.since, speeds)
    verdict = learner.study(traffic, clock.wall())
    if verdict.action != "kept":
        changed = Line(line.base, learner.since, learner.served, tuple(learner.previous))
        await lessons.publish(to_bytes(changed))
    await lessons.end_study()
    return verdict


async def _run(job: Job) -> Verdict:
    lessons = Lessons(connect(job.redis_url), job.cluster_secret, "student")
    try:
        return await study(lessons, own_examples(), job.speeds, SystemClock())
    finally:
        await lessons.aclose()


def main() -> None:
    """Read the job, do it, say what came of it."""
    os.nice(PATIENCE)
    data: dict[str, Any] = json.load(sys.stdin)
    verdict = asyncio.run(_run(Job(**data)))
    sys.stdout.write(json.dumps(asdict(verdict)) + "\n")


if __name__ == "__main__":
    main()
