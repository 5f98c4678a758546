"""Request bodies to InferenceRequests: only the fields somebody acts on are checked.

Unknown fields and everything a worker understands better go through unread. Each refusal names the
field, so that an OpenAI client shows the same kind of message as it would from OpenAI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from classifier import WorkloadClass
from classifier.quick import quick
from router.core import (
    BadRequest,
    Endpoint,
    Forbidden,
    InferenceRequest,
    NotFound,
    Principal,
    UnsupportedMediaType,
    Wishes,
)

if TYPE_CHECKING:
    from router.relay import Client

MAX_CHOICES: Final = 128  # OpenAI's own bound on n
MAX_NESTING: Final = 100  # of a body; llama.cpp's schema converter recurses, orjson ends at 254
MAX_HEADER_CHARS: Final = 256  # of ids that are echoed and logged
_JSON: Final = b"application/json"
_WISHES: Final = frozenset(
    (b"x-specroute-worker", b"x-specroute-mode", b"x-specroute-class", b"x-session-id")
)
_NO_WISHES: Final = Wishes()
_CLASSES: Final = frozenset(c.value for c in WorkloadClass)


class Directory(Protocol):
    """What is known of models and workers; the Fleet is one."""

    def resolve(self, name: str) -> str | None: ...

    def models(self) -> dict[str, tuple[str, ...]]: ...

    def serves(self, model: str, worker: str) -> bool: ...


@quick
@dataclass(frozen=True, slots=True)
class Addressee:
    """Where a request's `model` points: a configured model, and a pin if it holds one."""

    model: str
    worker: str | None = None


def parse(
    endpoint: Endpoint,
    body: bytes,
    client: Client,
    principal: Principal,
    directory: Directory,
    *,
    max_grammar_bytes: int,
) -> InferenceRequest:
    """A checked request. Grammars and schemas beyond the limit can hold a worker for minutes.

    Raises:
        UnsupportedMediaType: the content type is not JSON.
        BadRequest, NotFound, Forbidden: as the contract's table says.
    """
    payload = read_json(body, client.headers)
    check(endpoint, payload, max_grammar_bytes)
    addressee = find_model(payload.get("model"), directory)
    if principal.models is not None and addressee.model not in principal.models:
        raise Forbidden(f"this key may not use the model {addressee.model!r}", param="model")
    wishes = read_wishes(client.headers, addressee)
    return InferenceRequest(
        id=client.request_id,
        endpoint=endpoint,
        model=addressee.model,
        body=body,
        payload=payload,
        stream=payload.get("stream") is True,
        received_at=client.received_at,
        principal=principal,
        wishes=wishes,
        conversation=wishes.session or "",
    )


def read_json(body: bytes, headers: Mapping[bytes, bytes]) -> dict[str, Any]:
    """The body as a JSON object."""
    content_type = headers.get(b"content-type", b"")
    if content_type != _JSON and content_type.partition(b";")[0].strip().lower() != _JSON:
        raise UnsupportedMediaType("the content type must be application/json")
    try:
        payload = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}", code="invalid_json") from error
    if not isinstance(payload, dict):
        raise BadRequest("the body must be a JSON object", code="invalid_json")
    if body.count(b"{") + body.count(b"[") > MAX_NESTING and is_deeper(payload, MAX_NESTING):
        raise BadRequest(f"the body is nested deeper than {MAX_NESTING} levels")
    return payload


def is_deeper(value: Any, levels: int) -> bool:
    """Whether arrays and objects are nested in more than so many levels; no recursion."""
    level = [value]
    for _ in range(levels):
        inner = [part for whole in level for part in _parts(whole) if isinstance(part, dict | list)]
        if not inner:
            return False
        level = inner
    return True


def _parts(whole: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return whole.values() if isinstance(whole, dict) else whole


def find_model(name: object, directory: Directory) -> Addressee:
    """The model behind a name, an alias or MODEL@WORKER; without a name, the only model."""
    if name is None:
        known = list(directory.models())
        if len(known) == 1:
            return Addressee(known[0])
        raise BadRequest("you must provide a model", param="model")
    if not isinstance(name, str):
        raise BadRequest("model must be a string", param="model")
    model = directory.resolve(name)
    if model is not None:
        return Addressee(model)
    base, at, worker = name.rpartition("@")
    model = directory.resolve(base) if at else None
    if model is None:
        raise NotFound(
            f"the model {name[:100]!r} does not exist here", param="model", code="model_not_found"
        )
    if not directory.serves(model, worker):
        raise NotFound(
            f"the model {model!r} has no worker {worker[:100]!r}",
            param="model",
            code="worker_not_found",
        )
    return Addressee(model, worker)


def read_wishes(headers: Mapping[bytes, bytes], addressee: Addressee) -> Wishes:
    """The x-specroute headers and the pin of the model's name, which must agree."""
    if _WISHES.isdisjoint(headers):
        return _NO_WISHES if addressee.worker is None else Wishes(worker=addressee.worker)
    worker, mode = _text(headers, b"x-specroute-worker"), _text(headers, b"x-specroute-mode")
    pinned = addressee.worker
    if worker and pinned and worker != pinned:
        raise BadRequest(
            f"the model's name pins {pinned!r} and x-specroute-worker {worker!r}",
            param="x-specroute-worker",
        )
    hint = _text(headers, b"x-specroute-class")
    if hint is not None and hint not in _CLASSES:
        raise BadRequest(
            f"x-specroute-class must be one of {', '.join(sorted(_CLASSES))}",
            param="x-specroute-class",
        )
    return Wishes(
        worker=pinned or worker,
        mode=None if mode == "auto" else mode,
        workload_class=hint,
        session=_text(headers, b"x-session-id"),
    )


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return value.decode("latin-1").strip()[:MAX_HEADER_CHARS] or None if value else None


def check(endpoint: Endpoint, payload: Mapping[str, Any], max_grammar_bytes: int) -> None:
    """Refuse what no worker should see."""
    for name, rule in _REQUIRED.get(endpoint, {}).items():
        rule(name, payload.get(name))
    for name in payload.keys() & _OPTIONAL.keys():
        value = payload[name]
        if value is not None:
            _OPTIONAL[name](name, value)
            if name in _GRAMMARS and _size(value) > max_grammar_bytes:
                raise BadRequest(f"{name} is larger than {max_grammar_bytes} bytes", param=name)


def _size(value: Any) -> int:
    return len(value.encode()) if isinstance(value, str) else len(orjson.dumps(value))


Rule = Callable[[str, Any], None]


def _messages(name: str, value: Any) -> None:
    if not isinstance(value, list):
        raise BadRequest("messages must be an array", param=name)
    if not value:
        raise BadRequest("messages must not be empty", param=name)
    for index, message in enumerate(value):
        if message.__class__ is not dict or message.get("role").__class__ is not str:
            raise BadRequest(
                f"messages[{index}] must be an object with a role", param=f"messages[{index}].role"
            )
        content = message.get("content")
        if content is not None and content.__class__ is not str and not isinstance(content, list):
            raise BadRequest(
                f"the content of messages[{index}] must be a string or an array",
                param=f"messages[{index}].content",
            )


def _present(name: str, value: Any) -> None:
    if value is None:
        raise BadRequest(f"you must provide {name}", param=name)


def _prompt(name: str, value: Any) -> None:
    if not isinstance(value, (str, list)) or value == []:
        raise BadRequest("prompt must be a string or a non-empty array", param=name)


def _boolean(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise BadRequest(f"{name} must be true or false", param=name)


def _number(low: float, high: float) -> Rule:
    def rule(name: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise BadRequest(f"{name} must be a number", param=name)
        if not low <= value <= high:
            raise BadRequest(f"{name} must be between {low:g} and {high:g}", param=name)

    return rule


def _integer(low: int, high: int) -> Rule:
    def rule(name: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadRequest(f"{name} must be an integer", param=name)
        if not low <= value <= high:
            raise BadRequest(f"{name} must be between {low} and {high}", param=name)

    return rule


def _object(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise BadRequest(f"{name} must be an object", param=name)


def _array(name: str, value: Any) -> None:
    if not isinstance(value, list):
        raise BadRequest(f"{name} must be an array", param=name)


def _stop(name: str, value: Any) -> None:
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise BadRequest("stop must be a string or an array of strings", param=name)


def _string(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise BadRequest(f"{name} must be a string", param=name)


def _anything(name: str, value: Any) -> None:
    """The worker judges; only the size is ours."""


_REQUIRED: Final[Mapping[Endpoint, Mapping[str, Rule]]] = {
    Endpoint.CHAT: {"messages": _messages},
    Endpoint.COMPLETIONS: {"prompt": _prompt},
    Endpoint.MESSAGES: {"messages": _messages},
    Endpoint.RESPONSES: {"input": _present},
    Endpoint.EMBEDDINGS: {"input": _present},
    Endpoint.RERANK: {"query": _present},
}
_GRAMMARS: Final = frozenset({"grammar", "json_schema", "response_format", "text"})
_TOKENS: Final = _integer(-1, 10_000_000)  # llama-server reads -1 as "until the end"
_OPTIONAL: Final[Mapping[str, Rule]] = {
    "stream": _boolean,
    "stream_options": _object,
    "n": _integer(1, MAX_CHOICES),
    "max_tokens": _TOKENS,
    "max_completion_tokens": _TOKENS,
    "n_predict": _TOKENS,
    "temperature": _number(-1000.0, 1000.0),
    "top_p": _number(-1000.0, 1000.0),
    "tools": _array,
    "stop": _stop,
    "grammar": _string,
    "json_schema": _anything,
    "response_format": _object,
    "text": _anything,  # where /v1/responses has its schema
    "chat_template_kwargs": _object,
}
