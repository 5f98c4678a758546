"""Reads a request body into the few bounded strings every feature group works on.

A body is somebody else's JSON: any field may have any type, and nothing here raises. Only windows
of the texts are kept (a 200 KB conversation costs what a short one does); lengths are of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from classifier.quick import quick

USER_HEAD: Final = 240
USER_TAIL: Final = 160
ONE_REGION: Final = 100
EDGE_MIN: Final = 20
SYSTEM_HEAD: Final = 300
SYSTEM_TAIL: Final = 150
PREVIOUS: Final = 300
TOOLS_READ: Final = 16
"""Window sizes in characters (tools in items). 450 and 350 of the user's turn score 0.002 higher at
half the speed; the tail of a long system prompt is where the output format usually stands."""

_CUT: Final = "\n"
_TYPOGRAPHY: Final = (("’", "'"), ("“", '"'), ("”", '"'), ("–", "-"), ("—", "-"), ("…", "..."))
"""Signs that make a text non-ASCII without meaning anything here; ASCII is read twice as fast."""

_IMAGE_TYPES: Final = frozenset({"image_url", "input_image", "image"})
_SYSTEM_ROLES: Final = frozenset({"system", "developer"})


@quick
@dataclass(frozen=True, slots=True)
class PromptText:
    """The windows of one request.

    `window` holds the ends of the last user turn, `first` and `last` its first and last lines,
    where instructions stand (`last` is empty if `first` is all of it);
    `previous_answer` is the last assistant turn before it, `previous_user` the user turn before
    that; `prefill` is a trailing assistant message. `prompt_chars` counts all message texts.
    """

    payload: Mapping[str, Any]
    system: str
    window: str
    first: str
    last: str
    previous_user: str
    previous_answer: str
    prefill: str
    last_role: str
    n_messages: int
    n_user: int
    prompt_chars: int
    user_chars: int
    has_images: bool
    is_completion: bool
    tool_names: tuple[str, ...]
    tool_words: str


class FeatureGroup(Protocol):
    """Appends the names of the features a request has; pure, and silent on odd input."""

    def __call__(self, text: PromptText, out: list[str], /) -> None: ...


def flatten(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence) and not isinstance(content, (bytes, bytearray)):
        return "\n".join(filter(None, map(_part_text, content)))
    return ""


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        text = part.get("text")
        return text if isinstance(text, str) else ""
    return ""


def _has_image(content: object) -> bool:
    if not isinstance(content, list):
        return False
    return any(
        isinstance(part, Mapping) and _text_or_empty(part.get("type")) in _IMAGE_TYPES
        for part in content
    )


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


@quick
@dataclass(frozen=True, slots=True)
class _Scan:
    """What one pass over the messages finds."""

    system: str
    user: str
    previous_user: str
    answer: str
    last: str
    last_role: str
    n_messages: int
    n_user: int
    chars: int
    images: bool


def _scan(messages: Sequence[object]) -> _Scan:
    """Reads every message once; names are local because a conversation has hundreds of them."""
    system = user = previous_user = answer = last = ""
    role: Any = ""
    n_messages = n_user = chars = 0
    images = False
    for message in messages:
        if message.__class__ is not dict and not isinstance(message, Mapping):
            continue
        role, content = message.get("role"), message.get("content")
        if content.__class__ is str:
            last = content
        else:
            last = flatten(content)
            images = images or _has_image(content)
        n_messages += 1
        chars += len(last)
        if role == "user":
            n_user += 1
            previous_user, user = user, last
        elif role == "assistant":
            # An empty turn is a tool call: what matters is the last thing said in words.
            answer = last or answer
        elif role.__class__ is str and role in _SYSTEM_ROLES:
            system = f"{system}\n{last[-4096:]}" if system else last
    return _Scan(
        system,
        user,
        previous_user,
        answer,
        last,
        _text_or_empty(role),
        n_messages,
        n_user,
        chars,
        images,
    )


def _messages(payload: Mapping[str, Any]) -> tuple[Sequence[object], bool]:
    """The body's messages, whichever dialect it speaks, and whether it is a raw completion."""
    messages = payload.get("messages")
    if isinstance(messages, list):
        return messages, False
    prompt = payload.get("prompt")
    if prompt is None:
        prompt = payload.get("input_prefix")
    if prompt is None:
        given = payload.get("input")
        if isinstance(given, list) and any(isinstance(item, Mapping) for item in given):
            return given, False
        return [{"role": "user", "content": given}], False
    return [{"role": "user", "content": prompt}], True


def _before(messages: Sequence[object], scan: _Scan) -> str:
    """The answer that preceded a trailing assistant message (the prefill is not an answer)."""
    for message in reversed(messages[:-1]):
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            return flatten(message.get("content"))
    return ""


def _tools(payload: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    tools = payload.get("tools") or payload.get("functions")
    if not isinstance(tools, list) or payload.get("tool_choice") == "none":
        return (), ""
    names: list[str] = []
    words: list[str] = []
    for tool in tools[:TOOLS_READ]:
        if not isinstance(tool, Mapping):
            continue
        function = tool.get("function")
        spec = function if isinstance(function, Mapping) else tool
        names.append(_text_or_empty(spec.get("name"))[:64])
        words.append(_text_or_empty(spec.get("description"))[:80])
    return tuple(names), " ".join((*names, *words))


def read(payload: Mapping[str, Any]) -> PromptText:
    """Chat, completion, responses or Anthropic body to windows; unknown shapes read as empty."""
    messages, is_completion = _messages(payload)
    scan = _scan(messages)
    top = payload.get("system") or payload.get("instructions")
    system = flatten(top) if top is not None and not scan.system else scan.system
    prefilled = scan.last_role == "assistant"
    answer = _before(messages, scan) if prefilled else scan.answer
    window, first, last = edges(scan.user)
    names, words = _tools(payload)
    # By position: Python makes a dictionary of names first, which costs more than the object.
    return PromptText(
        payload,
        _ends(system),
        window,
        first,
        last,
        scan.previous_user[:PREVIOUS],
        answer[:PREVIOUS],
        scan.last[:PREVIOUS] if prefilled else "",
        scan.last_role,
        scan.n_messages,
        scan.n_user,
        scan.chars + (len(system) if system is not scan.system else 0),
        len(scan.user),
        scan.images,
        is_completion,
        names,
        words,
    )


def edges(user: str) -> tuple[str, str, str]:
    """The window of a turn, its first and its last line (see PromptText).

    A turn of up to ONE_REGION characters is all first line. A line counts from EDGE_MIN characters
    on, so that a greeting or a "thanks" is not taken for the instruction.
    """
    if len(user) > USER_HEAD + USER_TAIL:
        user = f"{user[:USER_HEAD]}{_CUT}{user[-USER_TAIL:]}"
    if not user.isascii():
        for sign, plain in _TYPOGRAPHY:
            user = user.replace(sign, plain)
    if len(user) <= ONE_REGION:
        return user, user, ""
    end = user.find("\n", EDGE_MIN, USER_HEAD)
    if end < 0:
        end = USER_HEAD if len(user) > USER_HEAD else len(user)
    tail = len(user) - USER_TAIL
    if tail < end:
        tail = end
    start = user.rfind("\n", tail, len(user) - EDGE_MIN)
    return user, user[:end], user[tail if start < 0 else start :]


def _ends(system: str) -> str:
    if len(system) <= SYSTEM_HEAD + SYSTEM_TAIL:
        return system
    return f"{system[:SYSTEM_HEAD]}\n{system[-SYSTEM_TAIL:]}"
