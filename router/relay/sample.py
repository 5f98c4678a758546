"""The words in the start of an answer, whatever the dialect: OpenAI's chats, completions and
Responses, Anthropic's Messages, llama.cpp's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from router.upstream.sse import event_objects, parse_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Piece(NamedTuple):
    """A part of an answer."""

    text: str = ""
    reasoning: str = ""
    called: bool = False  # a tool


_CALL = Piece(called=True)
_CALLS = frozenset(("tool_use", "input_json_delta", "function_call"))


def read_sample(sample: bytes) -> tuple[str, str, bool]:
    """Text, separate reasoning, and whether tools were called, of the start of an answer.

    `sample` is a stream of events or one JSON body, possibly cut off.
    """
    whole = parse_object(sample)
    bodies: Iterable[Mapping[str, Any]] = [whole] if whole is not None else event_objects(sample)
    pieces = [piece for body in bodies for piece in _pieces(body)]
    text, reasoning = "".join(p.text for p in pieces), "".join(p.reasoning for p in pieces)
    return text, reasoning, any(p.called for p in pieces)


def _pieces(body: Mapping[str, Any]) -> Iterator[Piece]:
    if "choices" in body:
        yield from map(_of_choice, _objects(body["choices"]))
    elif _string(body.get("type")).startswith("response."):
        yield _of_response_event(body)
    elif "output" in body:
        yield from (piece for item in _objects(body["output"]) for piece in _of_item(item))
    elif isinstance(body.get("content"), str):
        yield Piece(body["content"])
    else:
        blocks = (*_objects(body.get("content")), body.get("content_block"), body.get("delta"))
        yield from (_of_block(block) for block in blocks if isinstance(block, dict))


def _of_choice(choice: Mapping[str, Any]) -> Piece:
    part = choice.get("delta") or choice.get("message")
    if not isinstance(part, dict):
        return Piece(_string(choice.get("text")))
    text = _string(part.get("content")) or _string(choice.get("text"))
    return Piece(text, _string(part.get("reasoning_content")), bool(part.get("tool_calls")))


def _of_response_event(body: Mapping[str, Any]) -> Piece:
    kind, said = body["type"], _string(body.get("delta"))
    if "function_call" in kind:
        return _CALL
    return Piece(reasoning=said) if "reasoning" in kind else Piece(said)


def _of_item(item: Mapping[str, Any]) -> Iterator[Piece]:
    """Of an entry of a Responses object's output."""
    if item.get("type") in _CALLS:
        yield _CALL
    blocks = (*_objects(item.get("summary")), *_objects(item.get("content")))
    thought = item.get("type") == "reasoning"
    for block in blocks:
        said = _string(block.get("text"))
        yield Piece(reasoning=said) if thought else Piece(said)


def _of_block(block: Mapping[str, Any]) -> Piece:
    """Of a content block of Messages, whole or a part."""
    if block.get("type") in _CALLS:
        return _CALL
    return Piece(_string(block.get("text")), _string(block.get("thinking")))


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
