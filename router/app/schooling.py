"""Keeps this gateway's classifier in step with the others', and has it taught by traffic.

Two background tasks. `share`: once a second, remembered answers and samples go to Redis and the
others' come in, and a newly published model is served. `teach`: now and then, when enough answers
have come and no gateway studies, a process of its own does (`router.app.study`), which ends with
this one.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import structlog

from classifier.artifact import LinearPredictor
from classifier.line import from_bytes
from router.app.study_job import Job
from router.telemetry.store.base import StoreUnavailable
from workers.launch import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from router.app.served import Served
    from router.relay.produced import Remembrance
    from router.telemetry.lessons import Lessons

log = structlog.get_logger(__name__)

SHARE_S: Final = 1.0
STUDY_LIMIT_S: Final = 900
"""Longest study: 20,000 answers take a minute of an idle processor's time."""

NEEDED: Final = ("numpy", "scipy")
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Terms:
    """When to study: after so many answers, looked at every `interval` seconds. `enabled` False:
    nothing is kept to learn from and no learned model is served."""

    enabled: bool
    min_answers: int
    interval: float
    redis_url: str
    cluster_secret: str


class Schooling:
    """One gateway's part in it; `speeds` gives the current speed tables, `note` is told actions."""

    def __init__(
        self,
        terms: Terms,
        lessons: Lessons,
        remembrance: Remembrance,
        served: Served,
        speeds: Callable[[], Sequence[dict[str, dict[str, float]]]],
        note: Callable[[str], None],
    ) -> None:
        self._terms = terms
        self._lessons = lessons
        self._remembrance = remembrance
        self._served = served
        self._speeds = speeds
        self._note = note
        self._number = 0
        self._available = True

    async def share(self) -> None:
        """Exchange every second until cancelled."""
        while True:
            try:
                await self.exchange()
                self._tell(available=True)
            except StoreUnavailable as error:
                self._tell(available=False, reason=str(error))
            await asyncio.sleep(SHARE_S)

    async def exchange(self) -> None:
        """Tell, hear, and serve what was published.

        Raises:
            StoreUnavailable: Redis is away; what was to be told is lost, what was heard is not.
        """
        answers = self._remembrance.take_answers()
        if answers:
            await self._lessons.tell(answers)
        self._remembrance.hear(await self._lessons.heard())
        samples = self._remembrance.take_samples()
        if not self._terms.enabled:
            return
        if samples:
            await self._lessons.add_samples(samples)
        number = await self._lessons.number()
        if number != self._number:
            await self._serve_published()
            self._number = number

    async def _serve_published(self) -> None:
        """The model published last, unless it grew from another one than ours."""
        raw = await self._lessons.line()
        base = self._served.shipped.version
        predictor = await asyncio.to_thread(_predictor, raw, base) if raw else None
        self._served.swap(predictor)
        log.info("classifier_model", version=predictor.version if predictor else base)

    async def teach(self) -> None:
        """Study when it is time, until cancelled."""
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            log.info("classifier_does_not_learn", missing=missing, install="specroute[learn]")
        while True:
            await asyncio.sleep(self._terms.interval)
            try:
                if not missing and self._terms.enabled and await self._is_due():
                    await self._study()
            except (StoreUnavailable, OSError) as error:
                log.info("classifier_study_failed", reason=str(error))

    async def _is_due(self) -> bool:
        if await self._lessons.unstudied() < self._terms.min_answers:
            return False
        return await self._lessons.begin_study(STUDY_LIMIT_S)

    async def _study(self) -> None:
        terms = self._terms
        job = Job(terms.redis_url, terms.cluster_secret, tuple(self._speeds()))
        verdict = await _in_a_process(json.dumps(asdict(job)).encode())
        self._note(str(verdict.get("action", "failed")))
        log.info("classifier_study", **verdict)

    async def aclose(self) -> None:
        """Close the door to Redis."""
        await self._lessons.aclose()

    def _tell(self, *, available: bool, reason: str = "") -> None:
        if available != self._available:
            log.info("classifier_sharing", available=available, reason=reason)
        self._available = available


def _predictor(raw: bytes, base: str) -> LinearPredictor | None:
    line = from_bytes(raw, base)
    return LinearPredictor(line.served) if line is not None else None


async def _in_a_process(job: bytes) -> dict[str, Any]:
    """The verdict of a study in a process that ends with us, cancelled or not."""
    argv = wrapped((sys.executable, "-m", "router.app.study"), os.getpid())
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | ONE_THREAD,  # noqa: TID251 - handed on whole to our own child
        start_new_session=True,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(job), STUDY_LIMIT_S)
    except TimeoutError:
        return {"action": "failed", "reason": f"no verdict within {STUDY_LIMIT_S} s"}
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        return {"action": "failed", "reason": lines[-1] if lines else str(process.returncode)}
    verdict: dict[str, Any] = json.loads(output)
    return verdict
