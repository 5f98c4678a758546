"""Chat streams in which llama-server leaves something out: the role, and the sum of choices.

Every event of the worker goes on with its own bytes; what is missing is added as events of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from router.core import UpstreamFailed
from router.upstream.sse import parse_object

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATA: Final = b"data: "
_END: Final = b"\n\n"  # llama-server's, in every build
_DONE: Final = b"data: [DONE]"
_HOLD_LIMIT: Final = 16 * 1_048_576  # bytes of one event


def missing_role(first: bytes) -> bytes:
    """The event to send before a chat stream that begins with `first`, if its role is left out.

    llama-server sends the role with the first token, unless that is only a part of a character.
    """
    if b'"role"' in first or not first.startswith(b"data: {"):
        return b""
    event, end, _ = first.partition(_END)
    body = parse_object(event[len(_DATA) :].decode("utf-8", "replace")) if end else None
    return b"".join(_role_of(body, choice) for choice in _choices(body)) if body else b""


def _choices(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield choice


def _role_of(body: dict[str, Any], choice: dict[str, Any]) -> bytes:
    """The event with the role that should have come before `choice`; nothing if it is no delta."""
    if not isinstance(choice.get("delta"), dict):
        return b""
    delta = {"role": "assistant", "content": None}
    begun = {"finish_reason": None, "index": choice.get("index", 0), "delta": delta}
    return _event({**body, "choices": [begun]}, without=("timings", "usage", "prompt_progress"))


def _event(body: dict[str, Any], without: tuple[str, ...] = ()) -> bytes:
    return _DATA + orjson.dumps({k: v for k, v in body.items() if k not in without}) + _END


class ChoiceMerger:
    """A stream of several choices: each begins with its role, and usage comes once for all."""

    def __init__(self, asked: int) -> None:
        """`asked` is the request's n."""
        self._asked = asked
        self._rest = b""
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._usage: dict[str, Any] | None = None

    def feed(self, chunk: bytes) -> bytes:
        """What to send on of these bytes.

        Raises:
            UpstreamFailed: the stream ends before every choice has, or an event has no end.
        """
        *events, self._rest = (self._rest + chunk).split(_END)
        if len(self._rest) > _HOLD_LIMIT:
            raise UpstreamFailed("the worker's stream has an event that does not end")
        return b"".join(map(self._take, events))

    def finish(self) -> bytes:
        """What is left when the worker has closed."""
        return self._rest

    def _take(self, event: bytes) -> bytes:
        whole = event + _END
        if event.startswith(_DONE):
            return self._close() + whole
        body = parse_object(event[len(_DATA) :].decode("utf-8", "replace"))
        if body is None or not event.startswith(_DATA):
            return whole
        if body.get("choices") == [] and isinstance(body.get("usage"), dict):
            self._add(body)
            return b""
        return self._roles(body) + whole

    def _roles(self, body: dict[str, Any]) -> bytes:
        missing = []
        for choice in _choices(body):
            index = choice.get("index", 0)
            if index not in self._begun and "role" not in (choice.get("delta") or {}):
                missing.append(_role_of(body, choice))
            self._begun.add(index)
            if choice.get("finish_reason") is not None:
                self._ended.add(index)
        return b"".join(missing)

    def _add(self, body: dict[str, Any]) -> None:
        """Each choice's usage counts the same prompt, and its own answer."""
        if self._usage is not None:
            before, usage = self._usage["usage"], body["usage"]
            answered = _number(before, "completion_tokens") + _number(usage, "completion_tokens")
            total = _number(usage, "prompt_tokens") + answered
            usage = {**usage, "completion_tokens": answered, "total_tokens": total}
            body = {**body, "usage": usage}
        self._usage = body

    def _close(self) -> bytes:
        if len(self._ended) < self._asked:
            left = self._asked - len(self._ended)
            raise UpstreamFailed(f"the worker left out {left} of {self._asked} choices")
        return b"" if self._usage is None else _event(self._usage)


def _number(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0
