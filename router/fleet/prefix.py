"""Which worker probably holds how much of a prompt: the estimate behind uncached prefill.

A prompt is a hash chain over its message boundaries (tools first, as chat templates put them). A
worker that answered a prompt holds all of its boundaries until other prompts push them out; what
its answers report as `cache_n` corrects how far this can be trusted.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import orjson

from classifier.quick import quick

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workers.record import WorkerRecord

BOUNDARIES_PER_WORKER: Final = 4096
HOMES: Final = 16384
TRUST_STEP: Final = 0.2  # weight of one answer in a worker's trust
_DIGEST_BYTES: Final = 12


@quick
@dataclass(frozen=True, slots=True)
class Chain:
    """A prompt's boundaries, shortest first, each with the characters up to it.

    `conversation` names the conversation by its beginning (up to the first user turn).
    """

    boundaries: tuple[tuple[bytes, int], ...] = ()
    conversation: str = ""
    answers: int = 0  # assistant turns already in the prompt

    @property
    def chars(self) -> int:
        """Characters of the whole prompt."""
        return self.boundaries[-1][1] if self.boundaries else 0


def read_chain(payload: Mapping[str, Any]) -> Chain:
    """The chain of a chat or completion body; odd shapes give an empty or opaque one."""
    messages = payload.get("messages")
    if not isinstance(messages, list):
        return _opaque(payload.get("prompt"))
    tools = payload.get("tools")
    digest = _hash(b"", orjson.dumps(tools)) if tools else b""
    chars, answers, conversation = 0, 0, b""
    boundaries: list[tuple[bytes, int]] = []
    for message in messages:
        role, content, extra = _parts(message)
        digest = _hash(digest, role + b"\0" + content + extra)
        chars += len(content) + len(extra)
        boundaries.append((digest, chars))
        answers += role == b"assistant"
        if not conversation and role == b"user":
            conversation = digest
    return Chain(tuple(boundaries), (conversation or digest).hex(), answers)


def _opaque(prompt: object) -> Chain:
    """A raw prompt is one boundary: only a repeat of it is recognised."""
    if prompt is None:
        return Chain()
    data = prompt.encode("utf-8", "replace") if isinstance(prompt, str) else orjson.dumps(prompt)
    digest = _hash(b"", data)
    return Chain(((digest, len(data)),), digest.hex())


def _parts(message: object) -> tuple[bytes, bytes, bytes]:
    """Role, content and the rest of a message as bytes."""
    if not isinstance(message, dict):
        return b"", orjson.dumps(message), b""
    role = message.get("role")
    content = message.get("content")
    text = content.encode("utf-8", "replace") if isinstance(content, str) else _json(content)
    calls = message.get("tool_calls")
    return role.encode() if isinstance(role, str) else b"", text, _json(calls)


def _json(value: object) -> bytes:
    return orjson.dumps(value) if value is not None else b""


def _hash(previous: bytes, data: bytes) -> bytes:
    return blake2b(previous + data, digest_size=_DIGEST_BYTES).digest()


class _Held:
    """What one process holds, most recently used last, and how far that proved true."""

    __slots__ = ("boundaries", "record", "trust")

    def __init__(self, record: WorkerRecord) -> None:
        self.record = record  # as last seen
        self.boundaries: OrderedDict[bytes, None] = OrderedDict()
        self.trust = 1.0

    def share(self, chain: Chain) -> float:
        """The part of the prompt, 0 to 1, up to the deepest boundary held."""
        held = self.boundaries
        for digest, chars in reversed(chain.boundaries):
            if digest in held:
                return chars / max(1, chain.chars)
        return 0.0

    def add(self, chain: Chain) -> None:
        held = self.boundaries
        for digest, _ in chain.boundaries:
            held[digest] = None
            held.move_to_end(digest)
        while len(held) > BOUNDARIES_PER_WORKER:
            held.popitem(last=False)


class PrefixIndex:
    """Bounded memory of prompts per worker and of where each conversation lives."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._homes: OrderedDict[str, str] = OrderedDict()

    def cached_tokens(
        self, records: Sequence[WorkerRecord], chain: Chain, prompt_tokens: float
    ) -> dict[str, float]:
        """Tokens of the prompt that each worker probably holds; workers without any are absent."""
        found: dict[str, float] = {}
        for record in records:
            held = self._of(record)
            if held is not None and (share := held.share(chain)):
                found[record.name] = share * held.trust * prompt_tokens
        return found

    def home(self, conversation: str) -> str | None:
        """The worker that served the conversation last."""
        return self._homes.get(conversation)

    def remember(
        self,
        record: WorkerRecord,
        chain: Chain,
        conversation: str,
        *,
        cache_n: int | None,
        prompt_tokens: int | None,
    ) -> None:
        """The worker has digested the prompt; `cache_n` of `prompt_tokens` it held before."""
        held = self._of(record)
        if held is None:
            held = self._held[record.name] = _Held(record)
        if cache_n is not None and prompt_tokens:
            self._correct(held, chain, cache_n / prompt_tokens)
        held.add(chain)
        if conversation:
            self._homes[conversation] = record.name
            self._homes.move_to_end(conversation)
            if len(self._homes) > HOMES:
                self._homes.popitem(last=False)

    def _correct(self, held: _Held, chain: Chain, true_share: float) -> None:
        expected = held.share(chain)
        if expected > 0.0:
            seen = min(1.0, true_share / expected)
            held.trust += TRUST_STEP * (seen - held.trust)

    def _of(self, record: WorkerRecord) -> _Held | None:
        """What the worker holds; another process under the same name holds nothing."""
        held = self._held.get(record.name)
        if held is None or held.record is record:
            return held
        if _process(held.record) != _process(record):
            del self._held[record.name]
            return None
        held.record = record  # a heartbeat later
        return held


def _process(record: WorkerRecord) -> tuple[float, int | None, str]:
    return record.started_at, record.pid, record.url
