"""A plain answer out of a streamed one: the JSON the worker would have given without `stream`.

llama-server notices that a client is gone only while it streams, so plain requests for one choice
are streamed upstream and put together here. A contract test holds the result against the raw
server's own answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

from router.core.errors import GatewayError, UpstreamFailed
from router.upstream.sse import (
    HEAD_SAMPLE,
    SSEParser,
    TapResult,
    parse_object,
    plain_rows,
    row_object,
)
from router.upstream.worker_errors import worker_error

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_LIMIT = 64 * 1_048_576  # bytes of one streamed answer; 64 MiB is over 200,000 events
_ORDER = ("created", "model", "system_fingerprint", "object", "usage", "id", "timings")
_OBJECTS = {"chat.completion.chunk": "chat.completion"}
_PASSING = frozenset(("choices", "prompt_progress"))  # of one event, not of the answer
_PLAINLY = b'"stream":false'
_STREAM_FALSE = re.compile(rb'"stream"\s*:\s*(false|null)')


def can_assemble(payload: Mapping[str, Any]) -> bool:
    """Whether a plain chat or text completion has one choice and nothing a stream leaves out."""
    if payload.get("n") not in (None, 1) or payload.get("best_of") not in (None, 1):
        return False
    if payload.get("verbose") or _wants_logprobs(payload) or _is_begun(payload):
        return False
    return not _has_many_prompts(payload.get("prompt"))


def _wants_logprobs(payload: Mapping[str, Any]) -> bool:
    """A stream leaves out the logprobs of tokens it swallows, such as thinking tags."""
    return payload.get("logprobs") not in (None, False)


def _is_begun(payload: Mapping[str, Any]) -> bool:
    """A last message of the assistant is part of the plain answer, but not of a stream."""
    messages = payload.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, dict) and last.get("role") == "assistant"


def _has_many_prompts(prompt: Any) -> bool:
    """A list is one prompt when it is tokens, or text and tokens mixed; else one each."""
    if not isinstance(prompt, list) or len(prompt) < 2:
        return False
    return all(isinstance(p, str) for p in prompt) or any(
        isinstance(p, list | dict) for p in prompt
    )


def upstream_body(payload: Mapping[str, Any], body: bytes) -> bytes:
    """`body` with `stream: true` and `stream_options.include_usage: true`, the rest untouched.

    `payload` is `body` parsed. Where a value must be replaced and its place is not certain, the
    body is encoded anew.
    """
    options = payload.get("stream_options")
    counted = isinstance(options, dict) and options.get("include_usage") is True
    if counted and payload.get("stream") is True:
        return body
    spliced = _splice(payload, body)
    if spliced is not None:
        return spliced
    kept = options if isinstance(options, dict) else {}
    return orjson.dumps(
        {**payload, "stream": True, "stream_options": {**kept, "include_usage": True}}
    )


def _splice(payload: Mapping[str, Any], body: bytes) -> bytes | None:
    if not payload or "stream_options" in payload:
        return None
    added = b'"stream_options":{"include_usage":true},'
    if "stream" not in payload:
        added += b'"stream":true,'
    elif payload["stream"] is False and body.count(b'"stream"') == body.count(_PLAINLY) == 1:
        body = body.replace(_PLAINLY, b'"stream":true')  # what most clients send
    elif payload["stream"] is not True:
        # Inside a JSON string the quotes would be escaped, so a match is a key; if it is the only
        # one it is the top-level one that `payload` shows.
        body, count = _STREAM_FALSE.subn(b'"stream":true', body)
        if count != 1 or not (payload["stream"] is False or payload["stream"] is None):
            return None
    start = body.index(b"{") + 1
    return body[:start] + added + body[start:]


class Assembler:
    """Folds the events of one streamed completion (n = 1), chat or text."""

    def __init__(self) -> None:
        self._parser = SSEParser()
        self._size = 0
        self._sample: list[bytes] = []
        self._room = HEAD_SAMPLE
        self._events = 0
        self._top: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._tools: dict[int, dict[str, Any]] = {}
        self._logprobs: dict[str, list[Any]] = {}
        self._text: list[str] = []
        self._is_chat = False
        self._before, self._after = _NO_FRAME  # bytes around the text of the event before

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes of the stream.

        Raises:
            GatewayError: an error event, by the worker's status.
            UpstreamFailed: more than `ANSWER_LIMIT` bytes.
        """
        self._size += len(chunk)
        if self._size > ANSWER_LIMIT:
            raise UpstreamFailed(f"the worker's answer is larger than {ANSWER_LIMIT} bytes")
        if self._room > 0:
            self._sample.append(chunk[: self._room])
            self._room -= len(chunk)
        rows = plain_rows(chunk) if self._parser.is_between else None
        if rows is not None:
            for row in rows:
                self._take_row(row)
            return
        self._before, self._after = _NO_FRAME
        for body in self._parsed(chunk):
            if body is not None:
                self._take(body)

    def _take_row(self, row: bytes) -> None:
        """One event. Most differ from the one before in a string, and only that is read."""
        before, after = self._before, self._after
        if row.startswith(before) and row.endswith(after) and len(row) > len(before) + len(after):
            text = _string_of(row[len(before) : len(row) - len(after)])
            if text is not None:
                self._events += 1
                self._message["content"] = (self._message.get("content") or "") + text
                return
        body = row_object(row)
        text = self._take(body) if body is not None else None
        self._before, self._after = _NO_FRAME if text is None else _frame(row, text)

    def _parsed(self, chunk: bytes) -> list[dict[str, Any] | None]:
        try:
            return [parse_object(event.data) for event in self._parser.feed(chunk)]
        except ValueError as error:
            raise UpstreamFailed(f"the worker's stream holds {error}") from error

    @property
    def sample(self) -> bytes:
        """The first bytes of the stream, at most `HEAD_SAMPLE`."""
        return b"".join(self._sample)

    def result(self) -> TapResult:
        """What the answer has said about itself so far; see `StreamTap.result`."""
        top, reason = self._top, self._choice.get("finish_reason")
        usage, timings, model = top.get("usage"), top.get("timings"), top.get("model")
        if isinstance(usage, dict) and not isinstance(timings, dict):
            timings = usage.get("timings")  # where Luce's server puts them
        return TapResult(
            usage if isinstance(usage, dict) else None,
            timings if isinstance(timings, dict) else None,
            reason if isinstance(reason, str) else None,
            model if isinstance(model, str) else None,
            saw_done=reason is not None,
            content_events=self._events,
        )

    def body(self) -> bytes:
        """The plain answer's body.

        Raises:
            UpstreamFailed: the stream ended before a `finish_reason`.
        """
        return orjson.dumps(self.payload())

    def payload(self) -> dict[str, Any]:
        """The plain answer; fields in llama-server's order."""
        if self._choice.get("finish_reason") is None:
            raise UpstreamFailed("the worker's stream ended early")
        top = {name: value for name, value in self._top.items() if name not in _PASSING}
        if "object" in top:
            top["object"] = _OBJECTS.get(top["object"], top["object"])
        known = {name: top[name] for name in _ORDER if name in top}
        return {"choices": [self._assembled()], **known, **top}

    def _take(self, body: dict[str, Any]) -> str | None:
        """Take in an event; its text, where its one choice brings nothing else."""
        if "error" in body:
            raise _stream_error(body)
        if None in body.values():  # what is null says nothing
            body = {name: value for name, value in body.items() if value is not None}
        self._top.update(body)
        choices = body.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            text = self._take_choice(choices[0])
            return text if len(choices) == 1 else None
        return None

    def _take_choice(self, choice: dict[str, Any]) -> str | None:
        only: str | None = None
        for name, value in choice.items():
            if name == "delta" and isinstance(value, dict):
                self._is_chat = True
                only = self._take_delta(value)
            elif name == "text" and isinstance(value, str):
                self._events += 1
                self._text.append(value)
            elif name == "logprobs":
                self._take_logprobs(value)
            elif value is not None or name not in self._choice:
                self._choice[name] = value
        return only

    def _take_delta(self, delta: dict[str, Any]) -> str | None:
        for name, value in delta.items():
            if name == "tool_calls":
                self._events += 1
                self._take_tools(value)
            elif isinstance(value, str) and name != "role":
                self._events += 1
                known = self._message.get(name)
                self._message[name] = known + value if isinstance(known, str) else value
            elif value is not None:
                self._message[name] = value
        text = delta.get("content") if len(delta) == 1 else None
        return text if isinstance(text, str) else None

    def _take_tools(self, calls: Any) -> None:
        for call in calls if isinstance(calls, list) else ():
            if not isinstance(call, dict):
                continue
            known = self._tools.setdefault(call.get("index", len(self._tools)), {})
            for name, value in call.items():
                if name == "function":
                    _join_function(known.setdefault("function", {}), value)
                elif name != "index":
                    known[name] = value

    def _take_logprobs(self, value: Any) -> None:
        for name, rows in value.items() if isinstance(value, dict) else ():
            if isinstance(rows, list):
                self._logprobs.setdefault(name, []).extend(rows)

    def _assembled(self) -> dict[str, Any]:
        reason, index = self._choice["finish_reason"], self._choice.get("index", 0)
        logprobs = self._logprobs or None
        rest = {k: v for k, v in self._choice.items() if k not in ("finish_reason", "index")}
        if not self._is_chat:
            text = "".join(self._text)
            head = {"text": text, "index": index, "logprobs": logprobs, "finish_reason": reason}
            return {**head, **rest}
        head = {"finish_reason": reason, "index": index, "message": self._full_message()}
        return {**head, **({"logprobs": logprobs} if logprobs else {}), **rest}

    def _full_message(self) -> dict[str, Any]:
        tools = [self._tools[index] for index in sorted(self._tools)]
        content = self._message.get("content", None if tools else "")
        message = {"role": self._message.get("role", "assistant"), "content": content}
        message |= {name: v for name, v in self._message.items() if name not in message}
        return message | ({"tool_calls": tools} if tools else {})


_CONTENT = b'"delta":{"content":'
_NO_FRAME = (b"\0", b"")  # begins no event


def _frame(row: bytes, text: str) -> tuple[bytes, bytes]:
    """What stands before and after the text of an event that brings nothing but `text`.

    An event with the same bytes around another string differs from it in that string alone.
    """
    start = row.find(_CONTENT) + len(_CONTENT)
    if start < len(_CONTENT) or row.count(b'"delta"') != 1:
        return _NO_FRAME
    end = start + 1
    while (end := row.find(b'"', end) + 1) and row[end - 2 : end - 1] == b"\\":
        pass  # perhaps an escaped one: then the string is longer, if it is a string at all
    return (row[:start], row[end:]) if _string_of(row[start:end]) == text else _NO_FRAME


def _string_of(raw: bytes) -> str | None:
    """`raw` as a JSON string, or None."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, str) else None


def _join_function(known: dict[str, Any], part: Any) -> None:
    for name, value in part.items() if isinstance(part, dict) else ():
        known[name] = known.get(name, "") + value if isinstance(value, str) else value


def _stream_error(body: dict[str, Any]) -> GatewayError:
    error = body["error"]
    code = error.get("code") if isinstance(error, dict) else None
    is_status = isinstance(code, int) and 400 <= code < 600
    return worker_error(code if is_status and code is not None else 502, body)
