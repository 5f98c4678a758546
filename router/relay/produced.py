"""What answers turned out to be, remembered per application and conversation.

The sample of the relayed bytes is read off the hot path, by the recorder; `recall` corrects the
classifier with what the same application and conversation produced before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from classifier import Memory, blend, combine, label_output
from router.core import Status
from router.upstream.sse import event_objects, parse_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from classifier import Classification, Evidence
    from router.core import Outcome
    from workers.clock import Clock

ONE_SIDED: Final = 0.8
"""An application counts as of one class when this share of its answers was; one that is asked for
everything says nothing about the next request, whose own text then decides alone."""
MIN_CONFIDENCE: Final = 0.5
READ_PER_SECOND: Final = 20
"""Answers looked at in one second: a busy gateway learns as much from a sample of them."""
_EMPTY: Final[Mapping[str, Any]] = {}


class Remembrance:
    """The gateway's Memory with its two users: a sink, and the dispatcher's `recall`."""

    def __init__(self, clock: Clock) -> None:
        self.memory = Memory()
        self._clock = clock
        self._second = 0
        self._read = 0  # answers looked at in that second

    def recall(self, found: Classification, fingerprint: str, conversation: str) -> Classification:
        """`found`, corrected where the past is of one mind."""
        if not len(self.memory):
            return found
        now = self._clock.wall()
        application = self.memory.evidence(fingerprint, now)
        evidence = combine(application, self.memory.evidence(conversation, now))
        return blend(found, evidence) if _one_sided(evidence) else found

    def observe(self, outcome: Outcome) -> None:
        """Remember what one finished answer was."""
        if outcome.status is not Status.OK or not outcome.answer_sample or self._is_busy(outcome):
            return
        text, reasoning, called = read_sample(outcome.answer_sample)
        cut = outcome.finish_reason == "length"
        label = label_output(text, reasoning=reasoning, tool_calls=called, truncated=cut)
        keys = [key for key in (outcome.fingerprint, outcome.conversation) if key]
        if label.confidence >= MIN_CONFIDENCE and keys:
            self.memory.record(
                keys,
                label.kind,
                now=outcome.wall_time,
                accepted_length=outcome.timings.mean_accepted_length,
            )

    def _is_busy(self, outcome: Outcome) -> bool:
        """Whether enough was read in this second."""
        second = int(outcome.wall_time)
        if second != self._second:
            self._second, self._read = second, 0
        self._read += 1
        return self._read > READ_PER_SECOND


def _one_sided(evidence: Evidence) -> bool:
    total = evidence.answers
    return total > 0 and max(evidence.by_class.values()) >= ONE_SIDED * total


def read_sample(sample: bytes) -> tuple[str, str, bool]:
    """Text, separate reasoning, and whether tools were called, of the start of an answer.

    `sample` is a stream of events or one JSON body, possibly cut off.
    """
    whole = parse_object(sample)
    bodies: Iterable[Mapping[str, Any]] = [whole] if whole is not None else event_objects(sample)
    text: list[str] = []
    reasoning: list[str] = []
    called = False
    for body in bodies:
        for choice in body.get("choices") or ():
            part = choice.get("delta") or choice.get("message") or _EMPTY
            text.append(_string(part.get("content")) or _string(choice.get("text")))
            reasoning.append(_string(part.get("reasoning_content")))
            called = called or bool(part.get("tool_calls"))
    return "".join(text), "".join(reasoning), called


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
