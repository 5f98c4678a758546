"""What answers turned out to be, remembered per application and conversation, and kept to learn.

The sample of the relayed bytes is read off the hot path, by the recorder; `recall` corrects the
classifier with what the same application and conversation produced before.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from classifier import Memory, Remembered, blend, combine, label_output, sample
from router.core import Status
from router.relay.sample import read_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from classifier import Classification, ProducedLabel
    from classifier.memory import Evidence
    from router.core import Outcome
    from workers.clock import Clock

    Accepted = Callable[[Outcome], float | None]

MIN_CONFIDENCE: Final = 0.5
READ_PER_SECOND: Final = 20
"""Answers looked at in one second: a busy gateway learns as much from a sample of them."""

EVIDENCE_S: Final = 1.0
"""Seconds for which evidence is not read again, unless an answer adds to it."""

EVIDENCE_KEPT: Final = 1024

MAX_WAITING: Final = 2000
"""Answers and samples that wait to be shared; while nobody takes them the oldest go."""

_T = TypeVar("_T")


class Remembrance:
    """The gateway's Memory with its two users, a sink and the dispatcher's `recall`, and what
    waits to be told to the other gateways."""

    def __init__(self, clock: Clock, accepted: Accepted | None = None) -> None:
        """`accepted` says of an answer how its accepted length compares with the usual one."""
        self.memory = Memory()
        self._accepted = accepted
        self._clock = clock
        self._evidence: dict[tuple[str, str], tuple[float, Evidence]] = {}
        self._second = 0
        self._read = 0  # answers looked at in that second
        self._answers: deque[Remembered] = deque(maxlen=MAX_WAITING)
        self._samples: deque[bytes] = deque(maxlen=MAX_WAITING)

    def recall(self, found: Classification, fingerprint: str, conversation: str) -> Classification:
        """`found`, corrected by what the application and the conversation produced before."""
        if not len(self.memory):
            return found
        key, now = (fingerprint, conversation), self._clock.wall()
        read = self._evidence.get(key)
        if read is None or not 0.0 <= now - read[0] < EVIDENCE_S:
            read = self._read_evidence(key, now)
        blended, evidence = blend(found, read[1]), read[1]
        if not evidence.accepted_weight:
            return blended
        return replace(blended, accepted=evidence.accepted_ratio)

    def _read_evidence(self, key: tuple[str, str], now: float) -> tuple[float, Evidence]:
        """What is remembered of an application and a conversation; it fades over hours."""
        application, conversation = (self.memory.evidence(name, now) for name in key)
        read = (now, combine(application, conversation) if conversation.by_class else application)
        if len(self._evidence) >= EVIDENCE_KEPT:
            self._evidence.clear()
        self._evidence[key] = read
        return read

    def observe(self, outcome: Outcome) -> None:
        """Remember what one finished answer was."""
        if outcome.status is not Status.OK or not outcome.answer_sample or self._is_busy(outcome):
            return
        text, reasoning, called = read_sample(outcome.answer_sample)
        label = label_output(text, reasoning=reasoning, tool_calls=called, truncated=outcome.is_cut)
        self._remember(outcome, label)
        if outcome.features is not None:
            packed = sample(outcome.features, label, outcome.wall_time)
            if packed is not None:
                self._samples.append(packed)

    def _remember(self, outcome: Outcome, label: ProducedLabel) -> None:
        keys = tuple(key for key in (outcome.fingerprint, outcome.conversation) if key)
        if label.confidence >= MIN_CONFIDENCE and keys:
            accepted = self._accepted(outcome) if self._accepted is not None else None
            answer = Remembered(keys, label.kind, outcome.wall_time, accepted)
            self.memory.record(answer)
            self._evidence.clear()
            self._answers.append(answer)

    def hear(self, answers: Iterable[Remembered]) -> None:
        """Remember what other gateways saw."""
        for answer in answers:
            self.memory.record(answer)
        self._evidence.clear()

    def take_answers(self) -> list[Remembered]:
        """The answers remembered since the last call."""
        return _taken(self._answers)

    def take_samples(self) -> list[bytes]:
        """The packed examples kept since the last call."""
        return _taken(self._samples)

    def _is_busy(self, outcome: Outcome) -> bool:
        """Whether enough was read in this second."""
        second = int(outcome.wall_time)
        if second != self._second:
            self._second, self._read = second, 0
        self._read += 1
        return self._read > READ_PER_SECOND


def _taken(waiting: deque[_T]) -> list[_T]:
    taken = list(waiting)
    waiting.clear()
    return taken
