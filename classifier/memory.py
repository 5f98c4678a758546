"""What each application and conversation has produced so far, decayed; pure and bounded.

An application that always extracts JSON is known after a few answers, whatever its prompts say.
The caller brings the clock. Answers are plain values (`Remembered`), so that gateways can tell each
other what they saw.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import exp, lgamma, log
from typing import Any, Final, NamedTuple

from classifier.classes import CLASS_OF_KIND, CLASSES, Classification, WorkloadClass
from classifier.features.base import flatten
from classifier.quick import quick

HALF_LIFE_S: Final = 6 * 3600.0
"""Evidence counts half after six hours: applications change with deployments, not with minutes."""

MAX_ENTRIES: Final = 20_000
"""Entries kept (about 200 bytes each); the least recently used go first."""

SINGLE_PURPOSE: Final = 0.7
"""Chance, before anything is seen, that an application only ever produces one class."""

OFF_PURPOSE: Final = 0.03
"""Share of a single-purpose application's answers that are of another class: refusals, questions
back, labels read wrongly."""

MIXED_STRENGTH: Final = 1.5
"""Answers that the usual mix of classes counts for where an application is asked for everything."""

USUAL_MIX: Final[Mapping[str, float]] = {"structured": 0.4, "prose": 0.37, "reasoning": 0.23}
"""Shares of the classes in the training rows: what the text's probabilities already contain."""

ACCEPTED_STRENGTH: Final = 2.0
"""Answers as usual that an application's accepted length is shrunk by: answers of one kind differ
in it by 0.15 (sd of the logarithm), applications by about 0.1."""

CONVERSATION_WEIGHT: Final = 0.5
"""A conversation's own turns count half: the last turn may ask for something else."""

_SYSTEM_CHARS: Final = 8192


class Remembered(NamedTuple):
    """One finished answer: under which keys, its kind, when (seconds on the caller's clock), and
    its mean accepted length over what is usual of such texts and its drafter (None: not known)."""

    keys: tuple[str, ...]
    kind: str
    at: float
    accepted: float | None = None


@quick
@dataclass(frozen=True, slots=True)
class Evidence:
    """Decayed sums: answers by class value and by kind, ln of the relative accepted length
    (weighted) and its weight, as of `at` (seconds on the caller's clock)."""

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
    def accepted_ratio(self) -> float:
        """Accepted length over the usual one, shrunk towards 1: for the next answer."""
        return exp(self.accepted / (self.accepted_weight + ACCEPTED_STRENGTH))


EMPTY: Final = Evidence({}, {}, 0.0, 0.0, 0.0)


def fingerprint(payload: Mapping[str, Any], model: str) -> str:
    """16 hex digits for system prompt + tool names + model: "which application is this".

    Empty where a request has neither: it may be anybody's.
    """
    messages, get = payload.get("messages"), payload.get
    parts = [
        flatten(message.get("content"))[:_SYSTEM_CHARS]
        for message in (messages[:4] if isinstance(messages, list) else ())
        if isinstance(message, Mapping) and message.get("role") in ("system", "developer")
    ]
    system, instructions, tools = get("system"), get("instructions"), get("tools")
    if not parts and not (system or instructions or tools):
        return ""
    parts += [flatten(part)[:_SYSTEM_CHARS] for part in (system, instructions)]
    parts.extend(_tool_names(tools))
    if not any(parts):
        return ""
    parts.append(model)
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

    def record(self, answer: Remembered) -> None:
        """Counts one finished answer under each key; unknown kinds are ignored."""
        workload_class = CLASS_OF_KIND.get(answer.kind)
        if workload_class is None:
            return
        usable = answer.accepted is not None and answer.accepted > 0.0
        one = Evidence(
            {workload_class.value: 1.0},
            {answer.kind: 1.0},
            log(answer.accepted) if usable and answer.accepted else 0.0,
            1.0 if usable else 0.0,
            answer.at,
        )
        for key in answer.keys:
            self._put(key, _add(self._table.get(key, EMPTY), one, self.half_life_s))

    def evidence(self, key: str, now: float) -> Evidence:
        """What is known under `key`, decayed to `now`; EMPTY if nothing is."""
        found = self._table.get(key)
        if found is None:
            return EMPTY
        self._table.move_to_end(key)
        return _decayed(found, now, self.half_life_s)

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
    """What the text says, weighed by what this application has produced before.

    Two explanations of the past share the weight by how well they fit it: the application serves
    one purpose, or it is asked for anything and has a mix of its own. What the request's fields
    settled (source "rules", or thinking) and hints stay as they are.
    """
    if evidence.answers <= 0 or classification.source != "model" or classification.thinking:
        return classification
    said = classification.probabilities
    shares = _expected_shares(evidence)
    weights = [
        said[name] / USUAL_MIX[name] * share for name, share in zip(_NAMES, shares, strict=True)
    ]
    total = sum(weights)
    probabilities = {name: weight / total for name, weight in zip(_NAMES, weights, strict=True)}
    winner = CLASSES[weights.index(max(weights))]
    kind, source = classification.kind, classification.source
    if winner is not classification.workload_class:
        kind, source = _seen_kind(evidence, winner) or kind, "memory"
    return Classification(
        winner,
        kind,
        probabilities,
        classification.expected_output_tokens,
        classification.output_tokens_interval,
        classification.model_version,
        classification.thinking,
        classification.language,
        source,
    )


def _expected_shares(evidence: Evidence) -> tuple[float, ...]:
    """Probability of each class, in their order, in the next answer; the text not considered."""
    seen = evidence.by_class.get
    return _shares_after(*[round(seen(name, 0.0), 2) for name in _NAMES])


_NAMES: Final = tuple(c.value for c in CLASSES)


@lru_cache(maxsize=4096)
def _shares_after(*seen: float) -> tuple[float, ...]:
    """The same of the classes' counts, which hardly change from one request to the next."""
    counts = dict(zip(_NAMES, seen, strict=True))
    total = sum(counts.values())
    usual = {name: MIXED_STRENGTH * share for name, share in USUAL_MIX.items()}
    mixed = {name: (counts[name] + usual[name]) / (total + MIXED_STRENGTH) for name in counts}
    top = max(counts, key=lambda name: counts[name])
    off = OFF_PURPOSE / (len(counts) - 1)
    single = {name: 1.0 - OFF_PURPOSE if name == top else off for name in counts}
    # Log likelihoods of the past: a fixed purpose, unknown before (one in three); any mix.
    fits_single = sum(count * log(single[name]) for name, count in counts.items())
    fits_single -= log(len(counts))
    fits_mixed = lgamma(MIXED_STRENGTH) - lgamma(total + MIXED_STRENGTH)
    fits_mixed += sum(lgamma(counts[n] + usual[n]) - lgamma(usual[n]) for n in counts)
    odds = SINGLE_PURPOSE / (1.0 - SINGLE_PURPOSE) * exp(min(50.0, fits_single - fits_mixed))
    trust = odds / (1.0 + odds)
    return tuple(trust * single[name] + (1.0 - trust) * mixed[name] for name in counts)


def _seen_kind(evidence: Evidence, workload_class: WorkloadClass) -> str:
    kinds = {k: v for k, v in evidence.by_kind.items() if CLASS_OF_KIND[k] is workload_class}
    return max(kinds, key=lambda name: kinds[name]) if kinds else ""
