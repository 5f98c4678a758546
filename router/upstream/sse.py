"""Server-sent events without I/O: a full parser, a tap on relayed bytes, and a filter.

`SSEParser` reads every event (assembly, tests). `StreamTap` watches a relayed stream at about a
microsecond a chunk and reads only its first events and its tail. `UsageFilter` takes the usage
event out of a stream whose client did not ask for it. All accept any split of the bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from classifier.quick import quick

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD_SAMPLE = 16_384  # bytes kept from the start, for the produced label
TAIL = 2_048  # bytes kept from the end; the last events of llama-server take about 1 KiB
TAIL_LIMIT = 1_048_576  # most that is kept for one last event larger than that
EVENT_LIMIT = 16 * 1_048_576  # an event larger than this is not a worker's answer
HOLD_LIMIT = 65_536  # no usage event is this large

DONE = b"[DONE]"  # the data of OpenAI's closing event

_LINE_END = re.compile(rb"\r\n|\n|\r")
# Two line ends in a row. Atomic: the two halves of one CRLF are not two ends.
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")


@dataclass(frozen=True, slots=True)
class SSEEvent:
    """One dispatched event; `data` lines are joined by newlines."""

    data: str
    event: str = "message"
    id: str = ""


class SSEParser:
    """The event stream format of the HTML standard, fed with bytes split anywhere.

    Comments, `retry` and unknown fields are passed over; an event that the end of the stream cuts
    off is never dispatched.
    """

    __slots__ = ("_data", "_event", "_fresh", "_id", "_limit", "_rest", "_size", "_skip_lf")

    def __init__(self, event_limit: int = EVENT_LIMIT) -> None:
        self._limit = event_limit
        self._rest = b""
        self._data: list[str] = []
        self._size = 0
        self._event = ""
        self._id = ""
        self._fresh = True  # nothing read yet: a byte order mark may come
        self._skip_lf = False  # the last line ended with CR: a LF belongs to it

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """The events that `chunk` completes.

        Raises:
            ValueError: an event larger than the limit.
        """
        if self._skip_lf and chunk:
            self._skip_lf = False
            chunk = chunk[1:] if chunk[:1] == b"\n" else chunk
        buffer = self._rest + chunk
        events: list[SSEEvent] = []
        start = 0
        for match in _LINE_END.finditer(buffer, len(self._rest)):
            self._line(buffer[start : match.start()], events)
            start = match.end()
        self._skip_lf = start == len(buffer) and buffer[-1:] == b"\r"
        self._rest = buffer[start:]
        if self._size + len(self._rest) > self._limit:
            raise ValueError(f"an event of more than {self._limit} bytes")
        return events

    @property
    def is_amid(self) -> bool:
        """Whether an event has begun and not ended."""
        return bool(self._rest or self._data)

    @property
    def is_between(self) -> bool:
        """Whether the next byte begins an event, whatever came before."""
        return not (self._rest or self._data or self._event or self._skip_lf)

    def _line(self, line: bytes, events: list[SSEEvent]) -> None:
        if self._fresh:
            self._fresh = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        self._size += len(line)
        if name:
            self._set(name, value.removeprefix(b" ").decode("utf-8", "replace"))

    def _set(self, name: bytes, value: str) -> None:
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        elif name == b"id" and "\0" not in value:
            self._id = value

    def _dispatch(self, events: list[SSEEvent]) -> None:
        if self._data:
            events.append(SSEEvent("\n".join(self._data), self._event or "message", self._id))
        self._data = []
        self._event = ""
        self._size = 0


def plain_rows(chunk: bytes) -> list[bytes] | None:
    """The data of each event, where `chunk` is whole events of one data line each; else None.

    That is how llama-server sends them, and a tenth of the parser's work.
    """
    if chunk[:6] != b"data: " or chunk[-2:] != b"\n\n" or b"\r" in chunk:
        return None
    rows = chunk[6:-2].split(b"\n\ndata: ")
    return rows if chunk.count(b"\n") == 2 * len(rows) else None


def row_object(row: bytes) -> dict[str, Any] | None:
    """One of `plain_rows` as a JSON object, or None."""
    if row == DONE:
        return None
    try:
        value = orjson.loads(row)
    except orjson.JSONDecodeError:
        return parse_object(row.decode("utf-8", "replace"))
    return value if isinstance(value, dict) else None


def event_objects(raw: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects among the complete events of `raw`; anything else is passed over."""
    for event in SSEParser().feed(raw):
        value = parse_object(event.data)
        if value is not None:
            yield value


def parse_object(text: str | bytes) -> dict[str, Any] | None:
    """`text` as a JSON object, or None."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


@quick
@dataclass(frozen=True, slots=True)
class TapResult:
    """What a finished (or cut) answer said about itself; absent is None or empty."""

    usage: dict[str, Any] | None = None
    timings: dict[str, Any] | None = None
    finish_reason: str | None = None
    model: str | None = None
    error: dict[str, Any] | None = None  # the worker's error object
    saw_done: bool = False  # the stream reached its regular end
    content_events: int = 0  # events with content, about one a token; for streams that were cut


@dataclass(slots=True)
class _Facts:
    """The same, being collected."""

    found: dict[str, Any] = field(default_factory=dict)

    def read(self, body: dict[str, Any]) -> None:
        """Take what `body`, an event or a whole answer, says."""
        nested = body.get("response") or body.get("message")  # Responses and Messages streams
        source = nested if isinstance(nested, dict) else body
        for key, kind in (("usage", dict), ("timings", dict), ("model", str), ("error", dict)):
            value = body.get(key) or source.get(key)
            if isinstance(value, kind):
                self.found[key] = value
        reason = _finish_reason(body) or _response_reason(source)
        if reason is not None:
            self.found["finish_reason"] = reason


def _finish_reason(body: dict[str, Any]) -> str | None:
    for choice in _choices(body):
        if isinstance(choice.get("finish_reason"), str):
            return str(choice["finish_reason"])
    delta = body.get("delta")
    reason = delta.get("stop_reason") if isinstance(delta, dict) else None
    reason = reason or body.get("stop_reason") or body.get("stop_type")
    return reason if isinstance(reason, str) and reason != "none" else None


def _response_reason(source: dict[str, Any]) -> str | None:
    """Of a Responses object: why it is incomplete, else how it ended."""
    if source.get("object") != "response" or source.get("status") == "in_progress":
        return None
    details = source.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    reason = reason or source.get("status")
    return reason if isinstance(reason, str) else None


def _choices(body: dict[str, Any]) -> list[dict[str, Any]]:
    choices = body.get("choices")
    return [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []


def has_content(body: dict[str, Any]) -> bool:
    """Whether an event brings a part of the answer: text, reasoning, a refusal, a tool call."""
    if isinstance(body.get("choices"), list):
        return any(map(_choice_has_content, _choices(body)))
    kind = body.get("type")
    if isinstance(kind, str):
        return kind == "content_block_delta" or kind.endswith(".delta")
    return bool(body.get("content"))  # llama.cpp's own /completion and /infill


def _choice_has_content(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return any(delta.get(name) for name in _CONTENT)
    return bool(choice.get("text"))


_CONTENT = ("content", "reasoning_content", "tool_calls", "refusal", "reasoning", "function_call")


def plain_result(body: bytes) -> TapResult:
    """The same facts from the body of an answer that was not a stream."""
    value = parse_object(body)
    if value is None:
        return TapResult()
    facts = _Facts()
    facts.read(value)
    return TapResult(**facts_of(facts.found), saw_done=True)


def facts_of(found: dict[str, Any]) -> dict[str, Any]:
    """Luce's server puts its timings inside `usage`."""
    inner = found.get("usage", {}).get("timings")
    return {"timings": inner, **found} if isinstance(inner, dict) else found


class StreamTap:
    """Watches relayed chunks; nothing is parsed between the first content and the end."""

    __slots__ = (
        "_events",
        "_look",
        "_room",
        "_sample",
        "_tail",
        "_tail_bound",
        "_tail_size",
        "first_content",
    )

    def __init__(self) -> None:
        self.first_content = False  # an event with content has passed
        self._events = 0  # data events since, and with, the first content
        self._look = SSEParser()  # for the events until then
        self._sample: list[bytes] = []
        self._room = HEAD_SAMPLE
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._tail_bound = 2 * TAIL

    @property
    def sample(self) -> bytes:
        """The first bytes of the stream, at most `HEAD_SAMPLE`."""
        return b"".join(self._sample)

    def feed(self, chunk: bytes) -> int:
        """Take note of `chunk`; how many events it brought from the first content on."""
        size = len(chunk)
        self._tail.append(chunk)
        self._tail_size += size
        if self._tail_size > self._tail_bound:
            self._trim()
        if self._room > 0:
            self._sample.append(chunk[: self._room])
            self._room -= size
        if not self.first_content:
            self.first_content = self._seek(chunk)
            return self._events
        events = chunk.count(b"data: {")
        self._events += events
        return events

    def _seek(self, chunk: bytes) -> bool:
        """Whether the first content is in `chunk`; counts the events from it on."""
        rows = plain_rows(chunk) if self._look.is_between else None
        try:
            return self._seek_parsed(chunk) if rows is None else self._seek_rows(rows)
        except ValueError:  # too large to be looked into, so certainly content
            self._events = 1
            return True

    def _seek_rows(self, rows: list[bytes]) -> bool:
        """The same, parsing no row after the first content: whole answers come at once."""
        for index, row in enumerate(rows):
            body = row_object(row)
            if body is not None and has_content(body):
                self._events = 1 + sum([later[:1] == b"{" for later in rows[index + 1 :]])
                return True
        return False

    def _seek_parsed(self, chunk: bytes) -> bool:
        parsed = [parse_object(event.data) for event in self._look.feed(chunk)]
        known = [body for body in parsed if body is not None]
        for index, body in enumerate(known):
            if has_content(body):
                self._events = len(known) - index + self._look.is_amid
                return True
        return False

    def _trim(self) -> None:
        """Forget what is older than the last `TAIL` bytes and the few events before them."""
        data = b"".join(self._tail)
        cut = len(data) - TAIL
        for _ in range(_EVENTS_KEPT):
            cut = _event_start(data, cut)
        cut = max(cut, len(data) - TAIL_LIMIT)
        self._tail = [data[cut:]]
        self._tail_size = len(data) - cut
        self._tail_bound = max(2 * TAIL, 2 * self._tail_size)

    def result(self) -> TapResult:
        """What the tail says. Call it after the client has its bytes: it parses JSON."""
        facts, closing = _Facts(), 0
        done, bodies = _last_bodies(b"".join(self._tail))
        for body in bodies:
            if body is not None:
                facts.read(body)
                closing = 0 if has_content(body) else closing + 1
        events = max(0, self._events - closing) if self.first_content else 0
        return TapResult(**facts_of(facts.found), saw_done=done, content_events=events)


def _last_bodies(tail: bytes) -> tuple[bool, list[dict[str, Any] | None]]:
    """Whether the regular end is in it, and its events' objects."""
    rows = plain_rows(tail)
    if rows is not None:
        return DONE in rows, list(map(row_object, rows))
    events = SSEParser().feed(tail)
    done = any(e.data == "[DONE]" or e.event in _LAST_EVENTS for e in events)
    return done, [parse_object(event.data) for event in events]


def _event_start(data: bytes, before: int) -> int:
    """Where an event starts, the last place before; 0 if there is none."""
    plain = data.rfind(b"\n\n", 0, max(0, before - 1))
    crlf = data.rfind(b"\n\r\n", plain + 1, max(0, before - 1))
    return max(plain + 2 if plain >= 0 else 0, crlf + 3 if crlf >= 0 else 0)


_EVENTS_KEPT = 4  # the last that may be needed: content, finish, usage, one to begin with
_LAST_EVENTS = frozenset(("message_stop", "response.completed", "response.incomplete"))


class UsageFilter:
    """Takes the usage event (`choices` empty) out of a stream; every other byte passes unchanged.

    Held back is only an unfinished event that may still turn out to be that one.
    """

    __slots__ = ("_held", "_seam", "_until")

    def __init__(self) -> None:
        self._held = b""  # an event not yet judged
        self._until: re.Pattern[bytes] | None = None  # what ends the bytes being passed
        self._seam = b""  # line ends just passed, which may begin a blank line

    def feed(self, chunk: bytes) -> bytes:
        """What may go to the client now."""
        settled = self._until is None and not self._held
        if settled and chunk.endswith(b"\n\n") and b'"usage"' not in chunk:
            return chunk  # whole events, none of them in question: the usual case
        data, out = self._held + chunk, bytearray()
        self._held = b""
        start = 0
        while start < len(data):
            start = self._pass(data, start, out) if self._until else self._judge(data, start, out)
        return bytes(out)

    def finish(self) -> bytes:
        """What was held when the stream ended."""
        held, self._held = self._held, b""
        return b"" if _is_usage(held + b"\n\n") else held

    def _pass(self, data: bytes, start: int, out: bytearray) -> int:
        """Pass the rest of something known to be wanted; where it ends."""
        seam = self._seam
        found = _final(self._until, seam + data[start:])
        end = len(data) if found is None else start + found - len(seam)
        out += data[start:end]
        if found is None:
            self._seam = _line_ends(seam + data[start:])
        else:
            self._until, self._seam = None, b""
        return end

    def _judge(self, data: bytes, start: int, out: bytearray) -> int:
        """At an event's start: pass, drop or hold; where the next one starts."""
        first = data[start : start + 1]
        if first in b"\r\n":
            out += first
            return start + 1
        if first == b":":
            self._until = _LINE_END
            return start
        end = _final(_BLANK_LINE, data, start)
        if end is not None:
            if not _is_usage(data[start:end]):
                out += data[start:end]
            return end
        rest = data[start:]
        if len(rest) > HOLD_LIMIT or _OTHER_EVENT.match(rest):
            self._until = _BLANK_LINE
            return start
        self._held = rest
        return len(data)


# An event that is not the usage event whatever follows: no object, or `choices` first and filled.
_OTHER_EVENT = re.compile(rb'data: ?(?:[^{\s]|\{\s*"choices"\s*:\s*\[\s*[^\]\s])')


def _final(pattern: re.Pattern[bytes] | None, data: bytes, start: int = 0) -> int | None:
    """Where the first match ends, if no later byte can make it longer (CR, then LF)."""
    found = pattern.search(data, start) if pattern is not None else None
    if found is None or (found.end() == len(data) and data.endswith(b"\r")):
        return None
    return found.end()


def _line_ends(data: bytes) -> bytes:
    """The line ends that `data` closes with, at most the three that a blank line may want."""
    return data[len(data.rstrip(b"\r\n")) :][-3:]


def _is_usage(block: bytes) -> bool:
    """Whether a whole event is the one that `stream_options.include_usage` adds."""
    if b'"usage"' not in block:
        return False
    bodies = list(event_objects(block))
    return bool(bodies) and bodies[0].get("choices") == [] and bool(bodies[0].get("usage"))
