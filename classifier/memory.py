"""What each application and conversation has produced so far, decayed; pure and bounded.

An application that always extracts JSON is known after a few answers, whatever its prompts say.
The caller brings the clock; snapshots merge, so that gateways can share them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

from classifier.classes import CLASS_OF_KIND, CLASSES, Classification, WorkloadClass
from classifier.features.base import flatten

HALF_LIFE_S: Final = 6 * 3600.0
"""Evidence counts half after six hours: applications change with deployments, not with minutes."""

MAX_ENTRIES: Final = 20_000
"""Entries kept (about 200 bytes each); the least recently used go first."""

PRIOR_STRENGTH: Final = 1.5
"""How many answers of evidence the text's own probabilities are worth: with three equal answers
memory outweighs a text that says the opposite with 0.6."""

CONVERSATION_WEIGHT: Final = 0.5
"""A conversation's own turns count half: the last turn may ask for something else."""

_SYSTEM_CHARS: Final = 8192


@dataclass(frozen=True, slots=True)
class Evidence:
    """Decayed sums: answers by class value and by kind, accepted length (weighted) and its weight,
    as of `at` (seconds on the caller's clock)."""

    by_class: Mapping[str, float]
    by_kind: Mapping[str, float]
    accepted: float
    accepted_weight: float
    at: float

    @property
    def answers(self) -> float:
        """Decayed number of answers."""
        return sum(self.by_class.values())

    @property
    def accepted_length(self) -> float | None:
        """Mean accepted length (contract's definition), None if never measured."""
        return self.accepted / self.accepted_weight if self.accepted_weight > 0 else None


EMPTY: Final = Evidence({}, {}, 0.0, 0.0, 0.0)


def fingerprint(payload: Mapping[str, Any], model: str) -> str:
    """16 hex digits for system prompt + tool names + model: "which application is this"."""
    parts = [model]
    messages = payload.get("messages")
    parts.extend(
        flatten(message.get("content"))[:_SYSTEM_CHARS]
        for message in (messages[:4] if isinstance(messages, list) else ())
        if isinstance(message, Mapping) and message.get("role") in ("system", "developer")
    )
    parts.extend(flatten(payload.get(key))[:_SYSTEM_CHARS] for key in ("system", "instructions"))
    parts.extend(_tool_names(payload.get("tools")))
    return blake2b("\x00".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _tool_names(tools: object) -> Iterable[str]:
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, Mapping) else None
        spec = function if isinstance(function, Mapping) else tool
        name = spec.get("name") if isinstance(spec, Mapping) else None
        if isinstance(name, str):
            yield name


class Memory:
    """A bounded table of evidence by key (a fingerprint or a conversation id)."""

    def __init__(self, half_life_s: float = HALF_LIFE_S, max_entries: int = MAX_ENTRIES) -> None:
        self.half_life_s = half_life_s
        self.max_entries = max_entries
        self._table: OrderedDict[str, Evidence] = OrderedDict()

    def __len__(self) -> int:
        return len(self._table)

    def record(
        self,
        keys: Sequence[str],
        kind: str,
        *,
        now: float,
        accepted_length: float | None = None,
        weight: float = 1.0,
    ) -> None:
        """One finished answer of `kind` under each key; unknown kinds are ignored."""
        workload_class = CLASS_OF_KIND.get(kind)
        if workload_class is None:
            return
        measured = 0.0 if accepted_length is None else weight
        one = Evidence(
            {workload_class.value: weight},
            {kind: weight},
            (accepted_length or 0.0) * measured,
            measured,
            now,
        )
        for key in keys:
            self._put(key, _add(self._table.get(key, EMPTY), one, self.half_life_s))

    def evidence(self, key: str, now: float) -> Evidence:
        """What is known under `key`, decayed to `now`; EMPTY if nothing is."""
        found = self._table.get(key)
        if found is None:
            return EMPTY
        self._table.move_to_end(key)
        return _decayed(found, now, self.half_life_s)

    def snapshot(self, since: float = float("-inf")) -> dict[str, Evidence]:
        """A copy of the entries changed at or after `since`, for other gateways."""
        return {key: value for key, value in self._table.items() if value.at >= since}

    def merge(self, snapshot: Mapping[str, Evidence]) -> None:
        """Takes another gateway's entries where they hold more evidence than ours (snapshots are
        of whole tables, so adding would count an answer twice)."""
        for key, theirs in snapshot.items():
            ours = self._table.get(key, EMPTY)
            now = max(ours.at, theirs.at)
            mine = _decayed(ours, now, self.half_life_s).answers
            if _decayed(theirs, now, self.half_life_s).answers > mine:
                self._put(key, theirs)

    def _put(self, key: str, value: Evidence) -> None:
        self._table[key] = value
        self._table.move_to_end(key)
        while len(self._table) > self.max_entries:
            self._table.popitem(last=False)


def _scaled(values: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: value * factor for name, value in values.items()}


def _summed(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {*one, *other}}


def _decayed(value: Evidence, now: float, half_life_s: float) -> Evidence:
    factor = 0.5 ** (max(0.0, now - value.at) / half_life_s)
    return Evidence(
        _scaled(value.by_class, factor),
        _scaled(value.by_kind, factor),
        value.accepted * factor,
        value.accepted_weight * factor,
        max(now, value.at),
    )


def _add(one: Evidence, other: Evidence, half_life_s: float) -> Evidence:
    now = max(one.at, other.at)
    left, right = _decayed(one, now, half_life_s), _decayed(other, now, half_life_s)
    return Evidence(
        _summed(left.by_class, right.by_class),
        _summed(left.by_kind, right.by_kind),
        left.accepted + right.accepted,
        left.accepted_weight + right.accepted_weight,
        now,
    )


def combine(application: Evidence, conversation: Evidence) -> Evidence:
    """An application's evidence with a conversation's added at its weight."""
    weight = CONVERSATION_WEIGHT
    return Evidence(
        _summed(application.by_class, _scaled(conversation.by_class, weight)),
        _summed(application.by_kind, _scaled(conversation.by_kind, weight)),
        application.accepted + weight * conversation.accepted,
        application.accepted_weight + weight * conversation.accepted_weight,
        max(application.at, conversation.at),
    )


def blend(classification: Classification, evidence: Evidence) -> Classification:
    """The text's probabilities as a prior of PRIOR_STRENGTH answers, plus the answers seen.

    What the request's fields settled (source "rules", or thinking) and hints stay as they are.
    """
    if evidence.answers <= 0 or classification.source != "model" or classification.thinking:
        return classification
    total = PRIOR_STRENGTH + evidence.answers
    probabilities = {
        c.value: (
            PRIOR_STRENGTH * classification.probabilities[c.value]
            + evidence.by_class.get(c.value, 0.0)
        )
        / total
        for c in CLASSES
    }
    winner = WorkloadClass(max(probabilities, key=lambda name: probabilities[name]))
    if winner is classification.workload_class:
        return replace(classification, probabilities=probabilities)
    kind = _seen_kind(evidence, winner) or classification.kind
    return replace(
        classification,
        workload_class=winner,
        kind=kind,
        probabilities=probabilities,
        source="memory",
    )


def _seen_kind(evidence: Evidence, workload_class: WorkloadClass) -> str:
    kinds = {k: v for k, v in evidence.by_kind.items() if CLASS_OF_KIND[k] is workload_class}
    return max(kinds, key=lambda name: kinds[name]) if kinds else ""
